#!/usr/bin/env bash
# Fetches the parser of another scheduler by its package's name, and builds the small program that asks it.
#
#	prepare.sh NAME OUT     NAME: debian (the package `cron`), robfig (a Go module) or quartz (Maven); all goes below OUT
#
# Exit code 0: OUT/ask can be started. What is there already is not fetched again.
set -euo pipefail
name=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)/$name

case $name in
	debian)
		if [ ! -d "$out/source" ]; then
			# The machine's own package sources, for source packages, with lists of their own: nothing of the machine is changed.
			mkdir -p "$out/apt" "$out/lists/partial" "$out/cache/archives/partial"
			for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
				case $file in
					*.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$out/apt/$(basename "$file")" ;;
					*.list) [ ! -s "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >"$out/apt/$(basename "$file")" ;;
				esac
			done
			apt() {
				apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$out/apt" -o Dir::State::Lists="$out/lists" \
					-o Dir::Cache="$out/cache" -o APT::Sandbox::User=root "$@"
			}
			# A source of something else may have no source packages.
			apt update || true
			rm -rf "$out/fetched"
			mkdir "$out/fetched"
			(cd "$out/fetched" && apt source cron)
			mv "$out"/fetched/cron-*/ "$out/source"
		fi
		# Old C: what its own Makefile builds too, but for the files that start commands.
		(cd "$out/source" && cc -std=gnu99 -O1 -w -DPOSIX -DDEBUGGING=0 -I. -o "$out/ask" "$here/harness.c" \
			entry.c env.c misc.c user.c database.c compat.c)
		;;
	robfig)
		(cd "$here" && go build -mod=readonly -trimpath -o "$out/ask" .)
		;;
	quartz)
		if [ ! -f "$out/quartz.jar" ]; then
			mvn -q -B dependency:copy -Dartifact=org.quartz-scheduler:quartz:2.5.2 -DoutputDirectory="$out" -Dmdep.stripVersion=true
			mvn -q -B dependency:copy -Dartifact=org.slf4j:slf4j-api:2.0.17 -DoutputDirectory="$out" -Dmdep.stripVersion=true
		fi
		javac -d "$out/classes" -cp "$out/quartz.jar" "$here/Main.java"
		printf '#!/bin/sh\nexec java -cp "%s/classes:%s/quartz.jar:%s/slf4j-api.jar" Main "$@"\n' "$out" "$out" "$out" >"$out/ask"
		chmod +x "$out/ask"
		;;
	*)
		echo "no such scheduler: $name (debian, robfig, quartz)" >&2
		exit 2
		;;
esac
