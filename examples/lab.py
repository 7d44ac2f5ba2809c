"""The lab: the studies of the command line, in three lines of Python, with the same numbers."""

from hustings import lab

study = lab.simulate("le-s", members=50, loss=0.4, delay=0.1, runs=400, seed=7, engine="fast")
tmax = study["tmax"]
print(f"le-s: all agree after {tmax.mean:.2f} +- {tmax.stderr:.2f}")
print(study.command)

sizes = lab.sweep({"members": [4, 8, 16]}, protocol="bully", scenario="leader-crash")
for point in sizes.results:
    print(point.point.parameters["members"], point.block.metrics["messages"].moments.mean)

print(lab.check("bully", members=3))
print(lab.theory("bully", n=16, d=1)["messages"], "messages at n = 16, says the closed form")
