#!/bin/sh
# Fetches the genuine nvidia-smi 535 from Debian's non-free packages into .cache/nvidia-smi, for the tests that run it on
# the mock library. Nothing is installed, and apt's own lists and sources stay as they are. Needs apt and the network.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/.cache/nvidia-smi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

for needed in apt-get dpkg-deb; do
    if ! command -v "$needed" >/dev/null; then
        echo "error: $needed was not found, so that nvidia-smi can't be fetched" >&2
        echo "  hint: name one of driver 535 by REMEDIATE_TEST_SMI=/path/to/nvidia-smi" >&2
        exit 1
    fi
done
if [ ! -e "$keyring" ]; then
    echo "error: $keyring is missing; this is not Debian, or its package debian-archive-keyring is not installed" >&2
    exit 1
fi

# The mirror that this machine's apt uses already.
mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 2>/dev/null | awk '$2 == "Debian" { print $1; exit }')
if [ -z "$mirror" ]; then
    echo "error: apt has no Debian mirror to fetch from; run apt-get update first" >&2
    exit 1
fi

mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/apt/sources"
cat >"$folder/apt/sources/non-free.sources" <<SOURCES
Types: deb
URIs: $mirror
Suites: bookworm
Components: non-free
Signed-By: $keyring
SOURCES

own_apt() {
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/apt/sources" \
        -o Dir::State::Lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User="$(id -un)" "$@"
}

own_apt update
(cd "$folder" && own_apt download nvidia-smi)
dpkg-deb --extract "$folder"/nvidia-smi_*.deb "$folder/package"
cp "$folder/package/usr/lib/nvidia/current/nvidia-smi" "$folder/nvidia-smi"
rm -rf "$folder/apt" "$folder/package" "$folder"/nvidia-smi_*.deb
echo "fetched $folder/nvidia-smi" >&2
