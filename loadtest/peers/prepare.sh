#!/usr/bin/env bash
# Installs what one rival needs (Debian, as root; nothing that is there already) and builds its program.
#
#   prepare.sh NAME OUT     NAME: postgresql, graphile-worker, river, db-scheduler, quartz or temporal; all that is built goes below OUT
#
# Exit code 0: OUT holds a program that can be started. Otherwise the last line on stderr says what is missing.
set -euo pipefail
name=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)

# need PROBE PACKAGE...: the packages, when the probing command fails.
need() {
	local probe=$1
	shift
	bash -c "$probe" >/dev/null 2>&1 && return 0
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "== installing $*"
		apt-get update -q || true
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" || true
		bash -c "$probe" >/dev/null 2>&1 && return 0
	fi
	echo "missing for $name (Debian's names): $*" >&2
	return 1
}

postgres_there='command -v initdb || ls /usr/lib/postgresql/*/bin/initdb'
mkdir -p "$out"
case $name in
	postgresql)
		# Debian would start a cluster of its own at once otherwise.
		if ! bash -c "$postgres_there" >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
			mkdir -p /etc/postgresql-common
			echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
		fi
		need "$postgres_there" postgresql
		;;
	graphile-worker)
		need 'command -v node && command -v npm' nodejs npm
		cp "$here/$name"/package.json "$here/$name"/package-lock.json "$here/$name"/main.mjs "$out/"
		(cd "$out" && npm ci --no-audit --no-fund --loglevel=error)
		;;
	river | temporal)
		need 'command -v go' golang-go
		# Temporal's server is large: its first build takes eight minutes of CPU, and almost 4 GB in Go's caches.
		(cd "$here/$name" && go build -mod=readonly -trimpath -o "$out/$name-peer" .) || {
			echo "$name could not be built: its go.mod names Go $(sed -n 's/^go //p' "$here/$name/go.mod"), here is $(go version)" >&2
			exit 1
		}
		;;
	db-scheduler | quartz)
		need 'command -v java && command -v javac' default-jdk-headless
		need 'command -v mvn' maven
		rm -rf "$out/src"
		cp -R "$here/$name"/pom.xml "$here/$name"/src "$here"/java/src "$out/"
		(cd "$out" && mvn -q -B package) || {
			echo "$name could not be built: Java 17 or newer is needed, here is $(javac -version 2>&1)" >&2
			exit 1
		}
		;;
	*)
		echo "no rival is called $name" >&2
		exit 2
		;;
esac
