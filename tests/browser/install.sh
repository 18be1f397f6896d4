#!/usr/bin/env bash
# Installs what the browser tests need and is missing: Node.js and Chromium from the system's packages, the driver by npm.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
command -v node npm >/dev/null || missing+=(nodejs npm)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    missing+=(chromium fonts-dejavu-core)
if ((${#missing[@]})); then
    if ! command -v apt-get >/dev/null; then
        echo "the browser tests need: ${missing[*]}" >&2
        exit 1
    fi
    as_root=()
    ((EUID == 0)) || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
npm ci --silent --ignore-scripts --no-audit --no-fund
