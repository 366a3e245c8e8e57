#!/bin/sh
# What the study starts: a new database, its tables, a change of settings, a window.
set -eu
PATH=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1):$PATH # where Debian keeps it
export PATH PGHOST=127.0.0.1 PGUSER=tandem PGDATABASE=postgres
verb=$1
shift
case $verb in
start) # FOLDER PORT NAME=VALUE...
  folder=$1/data port=$2
  shift 2
  initdb --pgdata "$folder" --username tandem --auth trust --encoding UTF8 --locale C --no-sync >/dev/null
  for setting; do
    set -- "$@" -c "$setting"
    shift
  done
  exec postgres -D "$folder" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c autovacuum=off "$@"
  ;;
fill) # PORT SCALE: once the server answers
  pg_isready --quiet --port "$1"
  pgbench --port "$1" --initialize --quiet --scale "$2"
  psql --port "$1" --quiet --command CHECKPOINT
  ;;
change) # PORT NAME=VALUE...
  port=$1
  shift
  for setting; do
    psql --port "$port" --quiet --command "ALTER SYSTEM SET ${setting%%=*} = '${setting#*=}'"
  done
  psql --port "$port" --quiet --command 'SELECT pg_reload_conf()' >/dev/null
  ;;
load) # PORT SECONDS
  exec pgbench --port "$1" --no-vacuum --client 8 --jobs 2 --time "$2" --latency-limit 200
  ;;
esac
