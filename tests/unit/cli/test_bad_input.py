"""Bad input gets a sentence: one line on stderr, exit 2, nothing on stdout, nothing half-done."""

from __future__ import annotations

import pytest

from tests.unit.cli.commands import Hustings, in_own_process

# What is typed after `hustings`, and words that the complaint must hold.
BAD = [
    # Names
    ("nope", "unknown command 'nope'"),
    ("simm", "did you mean 'sim'?"),
    ("--nope", "--nope"),
    ("sim", "PROTOCOL"),
    ("sim buly", "did you mean 'bully'?"),
    ("sim bully --nope", "--nope"),
    ("sim bully ring", "extra argument"),
    ("compare bully rign", "did you mean 'ring'?"),
    ("protocols bulli", "did you mean 'bully'?"),
    ("theory buly --set n=4", "did you mean 'bully'?"),
    ("demo --protocol buly", "did you mean 'bully'?"),
    (
        "sim bully --engine fast",
        "engine 'fast' plays sup, al, le-a, le-s, le-m, probabilistic, not bully",
    ),
    ("sim bully --engine quick", "unknown engine 'quick'"),
    ("sim le-s --engine fast --scenario leader-crash", "plays simultaneous starts"),
    ("sim le-s --engine fast --fault crash:7@2.5", "plays simultaneous starts"),
    ("sim le-s --engine fast --set leaders=2", "engine 'fast' knows no leaders = 2"),
    ("sim le-s --engine fast --delay uniform:0,1", "knows one fixed delay only"),
    ("sim le-s --engine fast --choice lowest-id", "no other choice than highest-id"),
    ("sim le-s --engine fast --duplicate 0.1", "nothing else that may happen to a message"),
    ("sim le-s --engine fast --drift 0.1", "engine 'fast' knows no clocks"),
    ("sim le-s --engine fast --until 5", "engine 'fast' knows no until"),
    ("sim le-s --engine fast --max-events 5", "--max-events limits the event simulator"),
    ("sim le-s --engine fast --check", "--check needs every message"),
    ("sim le-s --engine fast --digest", "--digest needs every message"),
    ("sim le-s --engine fast --trace x.jsonl", "--trace needs every message"),
    # Sizes
    ("sim bully -n 0", "members must be at least 1, not 0"),
    ("sim bully -n -3", "members must be at least 1, not -3"),
    ("sim bully -n 1000001", "between 1 and 1,000,000"),
    ("sim bully -n 99999999999999999999", "between 1 and 1,000,000"),
    ("sim bully -n x", "'x' is not a valid integer"),
    ("sim bully -n 2.5", "'2.5' is not a valid integer"),
    ("compare -n 0", "members must be at least 1"),
    ("theory bully --set n=0", "n must be between 1 and"),
    ("sim bully --runs 0", "--runs"),
    ("sim bully --runs 10000001", "--runs"),
    ("sim bully --jobs 0", "--jobs"),
    ("sim bully --jobs 257", "--jobs"),
    ("sim bully --seed x", "--seed"),
    ("sim bully --until -1", "until must lie between 0 and"),
    ("sim bully --until 0", "until must lie between 0 and"),
    ("sim bully --until nan", "'nan' is not a valid float"),
    ("sim bully --until inf", "until must lie between 0 and"),
    ("sim bully --max-events 0", "max-events must be >= 1"),
    # Probabilities
    ("sim bully --loss 1.5", "loss must lie in [0, 1], not 1.5"),
    ("sim bully --loss -0.1", "loss must lie in [0, 1], not -0.1"),
    ("sim bully --loss nan", "'nan' is not a valid float"),
    ("sim bully --loss much", "'much' is not a valid float"),
    ("sim bully --collision 2", "collision must lie in [0, 1]"),
    ("sim bully --duplicate 1.01", "duplicate must lie in [0, 1]"),
    ("sim bully --reorder 2 --hold-back 1", "reorder must lie in [0, 1]"),
    ("sim bully --view 2", "view probability must lie in [0, 1]"),
    ("sim bully --view nan", "'nan' is not a valid float"),
    # Who
    ("sim bully --scenario leader-crash --detector 8", "member 8 is crashed"),
    ("sim bully --scenario leader-crash --detector 3 --crashed 3", "member 3 is crashed"),
    ("sim bully --scenario leader-crash --detector 9", "detector 9 is not a member"),
    ("sim bully --scenario leader-crash --detector x", "--detector 'x' is not understood"),
    ("sim ring --initiator 9", "initiator 9 is not a member: ids are 1 to 8"),
    ("sim ring --order upwards", "unknown order 'upwards' (known: random, decreasing, 3,32,5"),
    ("sim ring --order 1,2,x", "--order '1,2,x' is not understood: write ids as 3,32,5,80,6,12"),
    ("sim ring --order 3,5,3", "--order names 3 twice"),
    ("sim ring -n 4 --order 1,2,3", "--order names 3 ids, and there are 4 members"),
    ("sim ring --scenario join-larger -n 3 --order 1,2,3", "there are 4 members"),
    ("sim ring --order random --set place=x", "drop that setting or attribute"),
    ("sim ring --set place=x", "the settings name attribute 'x': give it by --attribute"),
    ("sim bully --order random", "--order goes with an election round a ring, and bully is none"),
    ("sim ring --initiator 3 --crashed 3", "member 3 is crashed"),
    ("sim bully --crashed 9", "crashed 9 is not a member"),
    ("sim bully --crashed 0", "crashed 0 is not a member"),
    ("sim bully --crashed 1-8", "8 of 8 members are crashed"),
    ("sim bully -n 4 --crashed 1-3 --scenario leader-crash", "4 of 4 members are crashed"),
    ("sim bully -n 1 --scenario leader-crash", "1 of 1 members are crashed"),
    ("sim bully --crashed 5-3", "runs backwards"),
    ("sim bully --crashed 1-999999999", "more than a million"),
    ("sim bully --crashed 1,,2", "is not understood"),
    ("sim bully --crashed ٣", "is not understood"),
    # Contradictions
    ("sim bully --detector 3", "has no dead leader to detect"),
    ("sim bully --scenario leader-crash --detection perfect --detector 3", "drop one of them"),
    ("sim bully --loss 0.1 --loss-model none", "loss model 'none' loses nothing"),
    ("sim bully --reorder 0.1", "needs a hold-back time"),
    ("sim bully --reorder 0.1 --hold-back 1 --fifo", "cannot both reorder and keep"),
    ("sim bully --detection-set T=1", "--detection-set goes with"),
    ("sim bully --delay uniform:0,1 --link 1>2=3", "--link goes with a fixed --delay"),
    ("compare bully ring --set T1=2", "--set goes with one protocol"),
    ("theory --set n=4", "--set needs a protocol"),
    ("theory bully --markdown", "takes nothing else"),
    # Models
    ("sim bully --scenario leader-crush", "did you mean 'leader-crash'?"),
    ("sim bully --loss 0.1 --loss-model corelated", "did you mean 'correlated'?"),
    ("sim bully --detection heartbeats", "did you mean 'heartbeat'?"),
    ("sim bully --delay gauss:1,2", "unknown delay model 'gauss'"),
    ("sim bully --delay uniform:1", "needs 2 numbers"),
    ("sim bully --delay uniform:2,1", "needs LOW <= HIGH"),
    ("sim bully --delay -1", "delay must be a finite time >= 0"),
    ("sim bully --delay nan", "delay must be a number"),
    ("sim bully --delay inf", "delay must be a number"),
    ("sim bully --delay soon", "delay must be a number"),
    ("sim bully --delay lognormal:0,1", "median must be > 0"),
    ("sim bully --delay lognormal:1,900", "sigma must be at most 50"),
    ("sim bully --hold-back nan", "'nan' is not a valid float"),
    ("sim bully --drift 1", "clock drift must lie in [0, 1)"),
    ("sim bully --offset nan", "'nan' is not a valid float"),
    ("sim bully --link 1>2", "write SENDER>RECEIVER=DELAY"),
    ("sim bully --link 1>9=2", "--link 1>9 names no member: ids are 1 to 8"),
    ("sim bully --link 0>1=2", "names no member"),
    ("sim bully --link 1>2=-1", "delay of link 1->2 must be a finite time"),
    ("sim bully --link 1>2=3 --link 1>2=4", "given twice"),
    ("sim bully --detection perfect --detection-set latency=-1", "latency must lie between"),
    ("sim bully --detection perfect --detection-set latncy=1", "did you mean 'latency'?"),
    ("sim bully --detection heartbeat --detection-set T=-1", "T must be a number > 0"),
    ("sim bully --detection accrual --detection-set q=1", "unknown setting 'q'"),
    # Choice and attributes
    ("sim bully --choice biggest", "choice 'biggest' is not understood"),
    ("sim bully --choice highest:cpu", "has no attribute 'cpu'"),
    ("sim bully --attribute cpu", "is not understood"),
    ("sim bully --attribute cpu=1,2", "2 values for 8 members"),
    ("sim bully --attribute cpu=nan", "attribute cpu must be a number"),
    ("sim bully -n 1 --attribute cpu=1 --attribute cpu=2", "--attribute cpu is given twice"),
    # Settings
    (
        "sim bully --set foo=1",
        "unknown setting 'foo' (known: delta, T1, T2, max_runs, election_backoff)",
    ),
    ("sim bully --set t1=1", "did you mean 'T1'?"),
    ("sim bully --set T1", "write KEY=VALUE"),
    ("sim bully --set =1", "write KEY=VALUE"),
    ("sim bully --set T1=", "write KEY=VALUE"),
    ("sim bully --set T1=1 --set T1=2", "--set T1 is given twice"),
    ("sim bully --set T1=nan", "T1 must be a number > 0"),
    ("sim bully --set T1=-1", "T1 must be a number > 0"),
    ("sim bully --set T1=soon", "T1 must be a number > 0"),
    ("sim bully --set T1=1e999", "T1 must be a number > 0"),
    ("sim bully --set delta=inf", "delta must be finite"),
    ("sim bully --set max_runs=0", "max_runs must be a whole number >= 1"),
    ("sim bully --set max_runs=1.5", "max_runs must be a whole number >= 1"),
    ("sim broadcast --set combined=perhaps", "combined must be true or false"),
    ("sim stable --set belief=none", "belief must be one of told, silent"),
    ("theory bully --set q=1", "unknown setting 'q' (known: n, d,"),
    ("theory bully --set n=x", "n must be a whole number"),
    # Faults
    ("sim bully --fault crash", "write WHAT:WHO@TIME"),
    ("sim bully --fault crash:7", "write WHAT:WHO@TIME"),
    ("sim bully --fault crush:7@1", "did you mean 'crash'?"),
    ("sim bully --fault crash:9@1", "unknown member '9'"),
    ("sim bully --runs 4 --jobs 2 --fault crash:9@1", "unknown member '9'"),
    ("sim bully --fault crash:1,2@1", "takes one member"),
    ("sim bully --fault crash:@1", "is not understood"),
    ("sim bully --fault crash:7@-1", "must be >= 0"),
    ("sim bully --fault suspect:1>1@1", "member 1 of others, not of itself: name two members"),
    ("sim bully --fault alive:2>2@1", "member 2 of others, not of itself"),
    ("sim bully --fault suspect:1>9@1", "unknown member '9'"),
    ("sim bully --fault alive:1>99@1", "unknown member '99'"),
    ("sim bully --fault suspect:1>0@1", "unknown member '0'"),
    ("sim bully --runs 4 --jobs 2 --fault suspect:1>9@1", "unknown member '9'"),
    ("sim bully --fault one-way:3>3@1", "'one-way:3>3@1' cuts 3 off from itself: name others"),
    ("sim bully --fault one-way:1>1,2@1", "cuts 1 off from itself"),
    ("sim bully --fault one-way:1-3>3-5@1", "cuts 3 off from itself"),
    ("sim bully --link 3>3=1", "joins a member to itself"),
    ("sim bully --fault crash:7@nan", "must be a number"),
    ("sim bully --fault crash:7@1e30", "must lie between now and"),
    ("sim bully --fault crash:7+x@1", "needs a number of sends"),
    ("sim bully --fault crash:7+3-9@1", "needs a number of sends"),
    ("sim bully --fault partition:1,2@1", "needs two sides"),
    ("sim bully --fault partition:1|@1", "is not understood"),
    ("sim bully --fault partition:1,2|2,3@1", "stands on two sides"),
    ("sim bully --fault one-way:1@1", "needs an arrow"),
    ("sim bully --fault suspect:1@1", "needs an arrow"),
    ("sim bully --fault suspect:1,2>3@1", "takes one member"),
    ("sim bully --fault heal:partitoin@1", "did you mean 'partition'?"),
    ("sim bully --fault heal:one-wy:1>2@1", "did you mean 'one-way'?"),
    ("sim bully --fault heal:one-way:1@1", "needs an arrow"),
    # Members on a network
    ("run jobs --measure hops --choice lowest:hops -- true", "what must be one of loss, delay"),
    ("run jobs --measure loss -- true", "take choice 'lowest:loss'"),
    ("agent --group jobs --measure hops --check", "what must be one of loss, delay"),
    ("agent --group jobs --measure delay --check", "take choice 'lowest:delay'"),
    # The demo
    ("demo -n 2", "members must lie between 3 and 100"),
    ("demo -n 10000", "members must lie between 3 and 100"),
    ("demo --protocol le-s-printed", "is for study"),
    ("demo --simulated -n 2", "members must lie between 3 and 40"),
    ("demo --no-tty --seconds 0", "seconds must lie above 0"),
    ("demo --no-tty --seconds nan", "'nan' is not a valid float"),
]


@pytest.mark.parametrize("typed, words", BAD, ids=[typed for typed, _ in BAD])
def test_a_mistake_gets_one_sentence(typed: str, words: str, hustings: Hustings) -> None:
    assert words in hustings(*typed.split()).complaint


@pytest.mark.parametrize("typed", ["sim buly", "sim bully --loss 2", "trace nowhere.jsonl"])
def test_so_it_does_in_a_process_of_its_own(typed: str) -> None:
    assert in_own_process(*typed.split()).complaint


def test_a_mistake_on_several_lines_still_gets_one(hustings: Hustings) -> None:
    assert "un\\nknown" in hustings("sim", "un\nknown").complaint


def test_with_json_too_a_mistake_leaves_stdout_empty(hustings: Hustings) -> None:
    assert hustings("sim", "buly", "--json").complaint
    assert hustings("compare", "buly", "--json").complaint
    assert hustings("theory", "bully", "--set", "q=1", "--json").complaint


def test_an_underscore_stands_for_a_hyphen(hustings: Hustings) -> None:
    for command in (["sim"], ["compare"], ["protocols"], ["theory"]):
        with_hyphen = hustings(*command, "bully-map", "--json")
        assert with_hyphen.code == 0
        assert hustings(*command, "bully_map", "--json") == with_hyphen
