#!/usr/bin/env bash
# The program of an earlier release, built from its commit; the last line of stdout is its path.
#
#   earlier_release.sh [COMMIT]      default: the newest release of CHANGELOG.md (heading 1.2.3, tag v1.2.3) that is not this commit;
#                                    until there is one, 8f373c3
#
# The commit is checked out as a worktree of this repository below target/earlier, with a target directory of its own, and the program
# is built as tests build this one: with the feature `faults`. CARGO may be set. What was built before is not built again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { echo "earlier release: $*" >&2; }

newest_release() {
	local version commit here
	here=$(git rev-parse HEAD)
	for version in $(sed -n 's/^## \[\{0,1\}v\{0,1\}\([0-9][0-9.]*[0-9]\).*/\1/p' CHANGELOG.md); do
		commit=$(git rev-parse --verify --quiet "v$version^{commit}") || continue
		[ "$commit" = "$here" ] || { echo "v$version"; return; }
	done
	echo 8f373c3
}

name=${1:-$(newest_release)}
commit=$(git rev-parse --verify --quiet "$name^{commit}") || { say "there is no commit '$name' in this repository"; exit 1; }
tree=$PWD/target/earlier/$commit
if [ ! -e "$tree/Cargo.toml" ]; then
	say "checking out $name ($commit)"
	mkdir -p "$(dirname "$tree")"
	# Worktrees whose directory is gone, as after `cargo clean`, keep their place until they are pruned.
	git worktree prune
	git worktree add --quiet --detach "$tree" "$commit" >&2
fi
say "building $name"
CARGO_TARGET_DIR=$tree/target ${CARGO:-cargo} build --locked --manifest-path "$tree/Cargo.toml" --workspace \
	--features campanile/faults --bin campanile >&2
echo "$tree/target/debug/campanile"
