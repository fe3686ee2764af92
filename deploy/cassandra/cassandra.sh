#!/usr/bin/env bash
# Apache Cassandra for tests, demonstrations and fault runs: 1 to 3 nodes on loopback, ended with the one who asked for them.
#
#   cassandra.sh prepare             installs a JDK 17 and Maven (Debian, as root) and fetches the server's jars into the cache
#   cassandra.sh run DIR [NODES]     starts NODES (1) nodes with their data in DIR and holds them
#
# `run` writes to stdout, one line each:
#   node N ADDRESS:PORT PID          a node has its process
#   ready                            all of them answer and have seen each other
# and then takes commands from stdin, answering each with one line:
#   kill N | start N                 kill -9; start again with the same data and ports    -> killed N | ready N
#   pause N | resume N               SIGSTOP and SIGCONT                                  -> paused N | resumed N
# It kills all of its nodes when stdin ends, on SIGTERM, SIGINT and SIGHUP; the nodes are also killed by the kernel when it is killed
# itself. So who holds the other end of stdin holds the nodes. With a terminal as stdin, type commands or Ctrl-D.
#
# HEAP (512m), READY_SECONDS (180) and REMOVE (1: DIR goes in the end) may be set; ADDRESSES (127.0.0.) is in front of the nodes' numbers, and with
# NAMESPACES each node runs in the network namespace of that name and its number. SETTINGS names a file whose settings take the place of those in
# cassandra.yaml, JVM further options of the virtual machine. The jars lie in ${XDG_CACHE_HOME:-~/.cache}/campanile.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -n 's:.*<version>\(5[0-9.]*\)</version>.*:\1:p' "$here/pom.xml")
lib=${XDG_CACHE_HOME:-$HOME/.cache}/campanile/cassandra-$version
say() { echo "cassandra: $*" >&2; }
fail() { say "$*"; exit 1; }

# Java 17: the only one that both this server and Debian 12 know.
java17() {
	local java
	for java in "${JAVA_HOME:-/nowhere}/bin/java" /usr/lib/jvm/*-17-*/bin/java "$(command -v java || true)"; do
		if [ -x "$java" ] && "$java" -version 2>&1 | grep -q '"17\.'; then
			echo "$java"
			return
		fi
	done
	return 1
}

install_debian() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "missing: $*. As root: apt-get install $*"
	say "installing $*"
	apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}

prepare() {
	local missing=()
	java17 >/dev/null || missing+=(openjdk-17-jdk-headless)
	[ -d "$lib" ] || command -v mvn >/dev/null || missing+=(maven)
	[ ${#missing[@]} = 0 ] || install_debian "${missing[@]}"
	java17 >/dev/null || fail "there is no Java 17"
	[ -d "$lib" ] && return
	mkdir -p "$(dirname "$lib")"
	# Two who prepare at once: the second finds what the first made.
	exec 9>"$lib.lock"
	flock 9
	if [ ! -d "$lib" ]; then
		say "fetching Apache Cassandra $version into $lib (70 MB)"
		local fetched
		fetched=$(mktemp -d "$lib.XXXXXX")
		mvn -B -q -Dstyle.color=never -f "$here/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
			-DoutputDirectory="$fetched" -DincludeScope=runtime >&2 || { rm -rf "$fetched"; fail "the jars cannot be fetched"; }
		mv "$fetched" "$lib"
	fi
	exec 9>&-
}

nodes=1 native= storage= cluster= addresses=${ADDRESSES:-127.0.0.}
declare -A pid=()
tokens=(-9223372036854775808 -3074457345618258603 3074457345618258602)

listens() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

# A port that is free on all nodes' addresses: below what the system gives out by itself.
free_port() {
	local port n busy
	while :; do
		port=$((10000 + RANDOM % 20000)) busy=
		for ((n = 1; n <= nodes; n++)); do listens "$addresses$n" "$port" && busy=1; done
		[ -n "$busy" ] || { echo "$port"; return; }
	done
}

configure() {
	local n=$1 data=$dir/node$1 seeds= k
	for ((k = 1; k <= nodes; k++)); do seeds+=${seeds:+,}$addresses$k:$storage; done
	mkdir -p "$data/log"
	sed -e "s|@CLUSTER@|$cluster|; s|@TOKEN@|${tokens[n - 1]}|; s|@ADDRESS@|$addresses$n|; s|@SEEDS@|$seeds|" \
		-e "s|@STORAGE_PORT@|$storage|; s|@NATIVE_PORT@|$native|" "$here/cassandra.yaml" >"$data/cassandra.yaml"
	[ -n "${SETTINGS:-}" ] || return 0
	local setting
	for setting in $(sed -n 's/^\([a-z_]*\):.*/\1/p' "$SETTINGS"); do sed -i "/^$setting:/d" "$data/cassandra.yaml"; done
	cat "$SETTINGS" >>"$data/cassandra.yaml"
}

launch() {
	local n=$1 data=$dir/node$1
	: >"$data/log/system.log"
	(
		cd "$data"
		# nsenter becomes what it runs.
		exec setpriv --pdeathsig KILL ${NAMESPACES:+nsenter "--net=/run/netns/$NAMESPACES$n"} "$java" -Xms"${HEAP:-512m}" -Xmx"${HEAP:-512m}" -XX:MaxDirectMemorySize=256m @"$here/jvm.options" ${JVM:-} \
			-javaagent:"$lib/jamm-0.4.0.jar" -Dcassandra.config="file://$data/cassandra.yaml" -Dcassandra.storagedir="$data" \
			-Dcassandra.logdir="$data/log" -Dlogback.configurationFile="$here/logback.xml" -cp "$lib/*" \
			org.apache.cassandra.service.CassandraDaemon
	) </dev/null >"$data/log/out" 2>&1 &
	pid[$n]=$!
	echo "node $n $addresses$n:$native ${pid[$n]}"
}

# A node answers once its native port is open; it has seen another when its log says so.
is_ready() {
	local n=$1 k
	listens "$addresses$n" "$native" || return 1
	for ((k = 1; k <= nodes; k++)); do
		[ "$k" = "$n" ] || [ -z "${pid[$k]:-}" ] || grep -q "/$addresses$k:$storage is now UP" "$dir/node$n/log/system.log" || return 1
	done
}

wait_ready() {
	local n=$1 end=$((SECONDS + ${READY_SECONDS:-180}))
	until is_ready "$n"; do
		kill -0 "${pid[$n]}" 2>/dev/null || { tail -n 20 "$dir/node$n/log/out" >&2; fail "node $n ended; see $dir/node$n/log"; }
		[ $SECONDS -lt $end ] || fail "node $n is not ready after ${READY_SECONDS:-180} s; see $dir/node$n/log"
		sleep 0.1
	done
}

end_node() {
	kill -KILL "${pid[$1]}" 2>/dev/null || true
	wait "${pid[$1]}" 2>/dev/null || true
	unset "pid[$1]"
}

end_all() {
	trap - EXIT
	local n
	for n in "${!pid[@]}"; do kill -KILL "${pid[$n]}" 2>/dev/null || true; done
	for n in "${!pid[@]}"; do wait "${pid[$n]}" 2>/dev/null || true; done
	[ -z "${REMOVE:-}" ] || rm -rf "$dir"
}

command_on() {
	local word=$1 n=$2
	case $word in
		start)
			[ -z "${pid[$n]:-}" ] || end_node "$n"
			launch "$n"
			wait_ready "$n"
			echo "ready $n"
			return
			;;
		kill) [ -z "${pid[$n]:-}" ] || end_node "$n"; echo "killed $n" ;;
		pause) kill -STOP "${pid[$n]}"; echo "paused $n" ;;
		resume) kill -CONT "${pid[$n]}"; echo "resumed $n" ;;
		*) say "kill, start, pause or resume, and a node; not '$word'" ;;
	esac
}

run() {
	dir=$1 nodes=${2:-1}
	case $nodes in 1 | 2 | 3) ;; *) fail "1 to 3 nodes, not '$nodes'" ;; esac
	prepare
	java=$(java17)
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	trap end_all EXIT
	trap 'exit 143' TERM INT HUP
	# Data that is there keeps its ports and its name: a node refuses data of another cluster.
	if [ ! -e "$dir/ports" ]; then
		native=$(free_port)
		storage=$(free_port)
		echo "$native $storage campanile-$$-$RANDOM" >"$dir/ports"
	fi
	read -r native storage cluster <"$dir/ports"
	local n word of
	for ((n = 1; n <= nodes; n++)); do configure "$n"; launch "$n"; done
	for ((n = 1; n <= nodes; n++)); do wait_ready "$n"; done
	echo ready
	while read -r word of; do
		[ -z "$word" ] || [[ ! $of =~ ^[1-$nodes]$ ]] || command_on "$word" "$of"
	done
}

case ${1:-} in
	prepare) prepare ;;
	run) [ $# -ge 2 ] || fail "run DIR [NODES]"; run "$2" "${3:-1}" ;;
	*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
