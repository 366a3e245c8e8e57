"""An engine that runs jobs as processes of this machine, a few at once.

engine.py FOLDER submit NAME, list, cancel ID..., why ID, preempt ID, lose ID
"""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys

AT_ONCE = 4
folder = pathlib.Path(sys.argv[1])


def read(job, name):
    try:
        return (job / name).read_text()
    except FileNotFoundError:
        return ""


def jobs():
    return sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: int(path.name))


def state(job):
    if read(job, "rc").strip():
        return "ended"
    if read(job, "cause") and not read(job, "pid"):
        return "ended"
    return "running" if read(job, "pid") else "pending"


def schedule():
    room = AT_ONCE - sum(state(job) == "running" for job in jobs())
    for job in jobs():
        if room > 0 and state(job) == "pending":
            with open(read(job, "log"), "wb") as log:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", 'env -i /bin/sh "$0/script"; echo $? > "$0/rc.new"; mv "$0/rc.new" "$0/rc"', str(job)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            (job / "pid").write_text(str(process.pid))
            room -= 1


def end(job, cause, how):
    if state(job) == "ended":
        return
    (job / "cause").write_text(cause)
    pid = read(job, "pid")
    if pid:  # not the shell that notes how it ended
        subprocess.run(["pkill", "-" + how.name[3:], "-P", pid], check=False)


def shown(job):
    what = {"id": job.name, "name": read(job, "name"), "state": state(job), "node": os.uname().nodename}
    if what["state"] == "ended":
        what["cause"] = read(job, "cause") or ("finished" if read(job, "rc").strip() == "0" else "failed")
    return json.dumps(what)


folder.mkdir(exist_ok=True)
with open(folder / "lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    match sys.argv[2], sys.argv[3:]:
        case "submit", [name, log, "--refuse"]:
            sys.exit("this queue takes no jobs")
        case "submit", [name, log, *_]:
            job = folder / str(len(jobs()) + 1)
            job.mkdir()
            for file, text in (("name", name), ("log", log), ("script", sys.stdin.read())):
                (job / file).write_text(text)
        case "list", []:
            print("\n".join(map(shown, jobs())))
        case "cancel", ids:
            for one in ids:
                end(folder / one, "cancelled", signal.SIGTERM)
        case "preempt", [one]:
            end(folder / one, "preempted", signal.SIGTERM)
        case "lose", [one]:
            end(folder / one, "node_failed", signal.SIGKILL)
        case "why", [one]:
            print("waits for one of", AT_ONCE, "places")
        case what, _:
            sys.exit(f"{what} is not known")
    schedule()
