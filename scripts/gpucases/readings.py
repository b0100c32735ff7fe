"""What gpu-check asks of the readings themselves: that they agree with nvidia-smi's own, that
load shows, and what one costs. Each check returns outcome, why, and puts figures into check.figures."""
import json
import os
import statistics
import subprocess
import sys
import time

QUERY = ["nvidia-smi", "-i", "0", "--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw,utilization.gpu", "--format=csv,noheader,nounits"]
NAMES = ("sm_clock_mhz", "mem_clock_mhz", "temp_c", "power_w", "util_pct")
# How far a reading may lie outside the two of nvidia-smi around it: clocks move in steps of
# 15 MHz, the sensor of temperature by one, power and utilisation are means of the last second.
TOLERANCE = {"sm_clock_mhz": 60, "mem_clock_mhz": 30, "temp_c": 2, "power_w": 15, "util_pct": 15}
ROUNDS = 20


def no_tool(check):
    if check.uuid is None:
        return {"outcome": "skip", "why": ["no nvidia-smi that lists a device"]}
    if check.left() < 20:
        return {"outcome": "not run", "why": ["out of time"]}
    return None


def outcome(why):
    return {"outcome": "fail", "why": why} if why else {"outcome": "pass"}


def tool():
    out = subprocess.run(QUERY, capture_output=True, text=True, timeout=30, check=True).stdout
    return dict(zip(NAMES, (float(v) for v in out.strip().splitlines()[0].split(","))))


def zlexec(check, *args, **more):
    return subprocess.run([check.o.binary, "--backend", "cuda", "--device", "0", *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)


def compare(check, when):
    """Takes one reading between two of nvidia-smi and lists what lies outside both."""
    first = tool()
    run = zlexec(check, "--sample")
    last = tool()
    if run.returncode:
        return [f"{when}: --sample exits {run.returncode}: {run.stderr.strip()}"]
    device = (json.loads(run.stdout).get("devices") or [{}])[0]
    check.figures[f"reading_{when}"] = {n: [first[n], device.get(n), last[n]] for n in NAMES}
    why = [] if device.get("uuid") == check.uuid else [f"{when}: uuid is {device.get('uuid')!r}, nvidia-smi says {check.uuid!r}"]
    for name in NAMES:
        value, near = device.get(name), TOLERANCE[name] + (0.15 * last[name] if name == "power_w" else 0)
        if value is None or not min(first[name], last[name]) - near <= value <= max(first[name], last[name]) + near:
            why.append(f"{when}: {name} is {value!r}, nvidia-smi says {first[name]} before and {last[name]} after it")
    return why


def idle(seconds):
    """Waits until the card has rested, within limits: clocks fall seconds after the last work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = tool()
        if now["util_pct"] == 0 and now["sm_clock_mhz"] < 1000:
            return
        time.sleep(0.5)


def load(check):
    """Before and after of a run during which the card comes under load, which stays until the
    second reading is taken; and the comparison with nvidia-smi at rest and under load."""
    if reason := no_tool(check):
        return reason
    program = check.o.cases / "load.py"
    if not program.exists():
        return {"outcome": "skip", "why": [f"{program.name} is not among the cases"]}
    worker = subprocess.Popen([sys.executable, str(program), str(check.scratch)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        idle(20)
        why = compare(check, "idle")
        record = check.scratch / "load.record"
        # The load begins after the first reading, which is what makes the two differ.
        wait = 'touch "$1/GO"; n=0; while [ ! -e "$1/ON" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done; sleep 2; [ -e "$1/ON" ]'
        run = zlexec(check, "--record", str(record), "--", "sh", "-c", wait, "sh", str(check.scratch))
        if run.returncode == 0:
            why += compare(check, "under_load")
    finally:
        (check.scratch / "STOP").touch()
        try:
            said = worker.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            worker.kill()
            said = worker.communicate()[1]
    if run.returncode:
        return outcome(why + [f"the load did not begin: exit {run.returncode}: {said.strip()[-500:]}"])
    telemetry = json.loads(record.read_text().splitlines()[-1])["telemetry"]
    before, after = ((telemetry[k].get("devices") or [{}])[0] for k in ("before", "after"))
    check.figures["load"] = {n: [before.get(n), after.get(n)] for n in NAMES}
    return outcome(why + differ(before, after))


def differ(before, after):
    """Lists what a load must change and did not: power by 50 W, utilisation by 30 points, the
    clock unless it was up already."""
    missing = [n for n in NAMES if before.get(n) is None or after.get(n) is None]
    if missing:
        return [f"unknown before or after a load: {', '.join(missing)}"]
    wanted = {"power_w": before["power_w"] + 50, "util_pct": before["util_pct"] + 30, "temp_c": before["temp_c"] - 1,
              "sm_clock_mhz": before["sm_clock_mhz"] + (100 if before["sm_clock_mhz"] < 1000 else -300)}
    return [f"{n} is {before[n]} before and {after[n]} under load" for n, least in wanted.items() if after[n] < least]


def cost(check):
    """The price of a reading beside the same query alone, interleaved. The limit is twice the
    promised 2 ms beyond the tool, as in scripts/bench: less is noise."""
    if reason := no_tool(check):
        return reason
    # zlexec's own query asks for three more columns, so the yardstick does too.
    yardstick = [w.replace("=clocks.sm", "=index,uuid,name,clocks.sm") if w.startswith("--query") else w for w in QUERY[:-1]] + ["--format=csv"]
    base = [check.o.binary, "-q", "--backend", "cuda", "--device", "0"]
    runs = {"tool": yardstick, "off": base + ["--telemetry", "off", "--", "true"], "on": base + ["--", "true"]}
    took = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, argv in runs.items():
            began = time.perf_counter()
            # Without a timeout: with one, Python polls for the end, in steps of up to 50 ms.
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=os.environ)
            took[name].append(1000 * (time.perf_counter() - began))
        if check.left() < 10:
            break
    middle = {name: statistics.median(values) for name, values in took.items()}
    extra = (middle["on"] - middle["off"]) / 2 - middle["tool"]
    check.figures["cost_ms"] = {n: round(v, 2) for n, v in middle.items()} | {"beyond_the_tool_per_reading": round(extra, 2), "rounds": len(took["tool"])}
    return outcome([f"a reading takes {extra:.1f} ms more than nvidia-smi alone ({middle['tool']:.1f} ms)"] if extra > 4 else [])


CHECKS = {"readings_load": load, "readings_cost": cost}
