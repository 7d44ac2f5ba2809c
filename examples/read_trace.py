"""Reading a trace: record one run, check its digest, count, and draw it."""

import io
from collections import Counter

from hustings.core.outcome import Elected
from hustings.protocols.bully_map import BullyMap
from hustings.sim.experiment import Experiment
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario
from hustings.sim.terminal import draw_text
from hustings.sim.trace import Declared, Sent, Tracer
from hustings.sim.trace_read import kind, read_stream

experiment = Experiment(
    kind=BullyMap,
    members=5,
    config=BullyMap.Settings(),
    scenario=Scenario("leader-crash", crashed=(4,), detectors=(1,)),
)
recorded = io.BytesIO()  # or a file: with TraceFile(path) as recorded
play(experiment, 0, Tracer(experiment.header(0), recorded))

recorded.seek(0)
trace = read_stream(recorded)  # refuses a trace that was cut short or edited
print(f"{trace.header.protocol}: {trace.footer.records} records, {trace.footer.ended}")
print(dict(Counter(kind(event) for event in trace.events if isinstance(event, Sent))))
for event in trace.events:
    if isinstance(event, Declared) and isinstance(event.outcome, Elected):
        print(f"at {event.t:g} member {event.m} accepts {event.outcome.leader} as leader")
print()
print(draw_text(trace, width=80, plain=True).text, end="")
