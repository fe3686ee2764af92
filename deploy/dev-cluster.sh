#!/usr/bin/env bash
# A cluster to look at, on loopback: Apache Cassandra, three nodes, two executors, demo jobs. Ends with Ctrl-C, and nothing stays but
# its directory.
#
#   dev-cluster.sh CAMPANILE DIR
set -euo pipefail

campanile=$(realpath "$1") dir=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$dir"
dir=$(realpath "$dir")
# What an earlier run said is no answer of this one.
rm -f "$dir"/*.out "$dir"/store.in
# Its own session's processes end with it, however it ends.
trap 'trap - EXIT; kill -- $(jobs -p) 2>/dev/null || true; wait' EXIT
trap 'exit 130' INT TERM HUP

echo "starting Apache Cassandra (its first time it is fetched, 70 MB) ..."
mkfifo "$dir/store.in"
"$here/cassandra/cassandra.sh" run "$dir/store" 1 <"$dir/store.in" >"$dir/store.out" 2>"$dir/store.log" &
exec 3>"$dir/store.in"
until grep -q '^ready' "$dir/store.out"; do
	kill -0 $! 2>/dev/null || { tail -n 5 "$dir/store.log" >&2; exit 1; }
	sleep 0.2
done
export CAMPANILE_CQL__CONTACT_POINTS CAMPANILE_CQL__REPLICATION=1 CAMPANILE_NODE__SHARDS=64
CAMPANILE_CQL__CONTACT_POINTS=$(sed -n 's/^node 1 \([^ ]*\) .*/\1/p' "$dir/store.out" | tail -n 1)

export CAMPANILE_CLUSTER__NAME=dev CAMPANILE_CLUSTER__SEEDS=127.0.0.1:7712,127.0.0.1:7722,127.0.0.1:7732
[ -d "$dir/keys" ] || "$campanile" cluster new-keys --name dev "$dir/keys" >/dev/null 2>&1
export CAMPANILE_CLUSTER__KEY_FILE=$dir/keys/gossip.keys CAMPANILE_CLUSTER__TLS_CERT_FILE=$dir/keys/node.pem
export CAMPANILE_CLUSTER__TLS_KEY_FILE=$dir/keys/node-key.pem CAMPANILE_CLUSTER__TLS_CA_FILE=$dir/keys/ca.pem
if [ ! -e "$dir/token" ]; then
	(umask 077 && "$campanile" token new --name dev --role operator --append "$dir/tokens" 2>/dev/null | head -n 1 >"$dir/token")
fi
export CAMPANILE_AUTH__TOKEN_FILE=$dir/tokens
CAMPANILE_API_TOKEN=$(cat "$dir/token")
export CAMPANILE_API_TOKEN CAMPANILE_SERVER=http://127.0.0.1:7710
"$campanile" schema apply >/dev/null

start() {
	local n=$1 at=127.0.0.1:77$1
	CAMPANILE_NODE__NAME=n$n CAMPANILE_NODE__DATA_DIR=$dir/n$n CAMPANILE_HTTP__LISTEN=${at}0 CAMPANILE_RPC__LISTEN=${at}1 \
		CAMPANILE_CLUSTER__GOSSIP_LISTEN=${at}2 CAMPANILE_CLUSTER__GATEWAY_LISTEN=${at}3 \
		"$campanile" server --with-parent $$ >"$dir/n$n.out" 2>>"$dir/n$n.log" &
	echo $! >"$dir/n$n.pid"
}
for n in 1 2 3; do start "$n"; done
for n in 1 2 3; do until grep -q '^rpc=' "$dir/n$n.out"; do sleep 0.1; done; done
all=127.0.0.1:7711,127.0.0.1:7721,127.0.0.1:7731
for e in 1 2; do
	"$campanile" executor --rpc "$all" --slots 16 --id "executor-$e" >>"$dir/executor-$e.log" 2>&1 &
done
for n in 1 2 3 4 5 6; do
	# It may be there from before.
	"$campanile" job create --name "demo-$n" --every "$((n + 1))s" --sh "echo demo $n" >/dev/null 2>&1 || true
done

cat <<TEXT

Three nodes, two executors and six demo jobs run.

  HTTP   http://127.0.0.1:7710  http://127.0.0.1:7720  http://127.0.0.1:7730     RPC  $all
  CLI    export CAMPANILE_SERVER=http://127.0.0.1:7710 CAMPANILE_API_TOKEN=\$(cat $dir/token)
  logs   $dir/n1.log, n2.log, n3.log

See a node die, and its jobs go on elsewhere within some four seconds:
  kill -9 \$(cat $dir/n2.pid)
  $campanile job runs demo-1                 # asks n1, whoever owns the job
  tail -f $dir/n1.log $dir/n3.log            # "shard served" tells who took over
Ctrl-C ends everything.
TEXT
wait
