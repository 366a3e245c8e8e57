#!/bin/sh
# An engine that runs jobs as processes of this machine, a few at once.
#
#     engine.sh FOLDER submit NAME LOG, list, cancel ID..., why ID, preempt ID, lose ID
set -eu
at_once=4
folder=$1 what=$2
shift 2
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
jobs=
while [ -d "$folder/$((${jobs##* } + 1))" ]; do jobs="$jobs $((${jobs##* } + 1))"; done

# tell JOB FILE has what the file says in $said.
tell() {
	said=
	[ ! -e "$folder/$1/$2" ] || read -r said <"$folder/$1/$2" || :
}

# look JOB has its state in $state, and what that stands on.
look() {
	tell "$1" rc
	rc=$said
	tell "$1" pid
	pid=$said
	tell "$1" cause
	cause=$said
	state=pending
	[ -z "$pid" ] || state=running
	[ -z "$rc" ] && { [ -z "$cause" ] || [ -n "$pid" ]; } || state=ended
}

schedule() {
	room=$at_once
	for job in $jobs; do
		look "$job"
		[ $state != running ] || room=$((room - 1))
	done
	for job in $jobs; do
		look "$job"
		[ $state = pending ] && [ $room -gt 0 ] || continue
		tell "$job" log
		# Behind the job nothing is started that end could kill: it would not be noted as ended.
		# shellcheck disable=SC2016 # the shell that is started expands it
		setsid /bin/sh -c 'env -i /bin/sh "$0/script"; echo $? >"$0/rc"' "$folder/$job" </dev/null >"$said" 2>&1 9>&- &
		echo $! >"$folder/$job/pid"
		room=$((room - 1))
	done
}

# end JOB CAUSE SIGNAL
end() {
	look "$1"
	[ $state != ended ] || return 0
	echo "$2" >"$folder/$1/cause"
	[ -z "$pid" ] || pkill "-$3" -P "$pid" || : # not the shell that notes how it ended
}

case $what in
submit)
	[ "${3:-}" != --refuse ] || {
		echo "this queue takes no jobs" >&2
		exit 1
	}
	new=$((${jobs##* } + 1))
	mkdir "$folder/$new"
	echo "$1" >"$folder/$new/name"
	echo "$2" >"$folder/$new/log"
	cat >"$folder/$new/script"
	jobs="$jobs $new"
	;;
list)
	read -r node </proc/sys/kernel/hostname
	for job in $jobs; do
		look "$job"
		tell "$job" name
		[ -n "$cause" ] || [ "$rc" != 0 ] || cause=finished
		[ $state != ended ] || ended=", \"cause\": \"${cause:-failed}\""
		printf '{"id": "%s", "name": "%s", "state": "%s", "node": "%s"%s}\n' "$job" "$said" $state "$node" "${ended:-}"
		ended=
	done
	;;
cancel) for one; do end "$one" cancelled TERM; done ;;
preempt) end "$1" preempted TERM ;;
lose) end "$1" node_failed KILL ;;
why) echo "waits for one of $at_once places" ;;
*)
	echo "$what is not known" >&2
	exit 1
	;;
esac
schedule
