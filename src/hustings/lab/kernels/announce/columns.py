"""What a kernel writes for each run: one row of numbers, times in ticks."""

from __future__ import annotations

TMAX = 0
COMPLETE = 1  # when the announcement that was sent at tmax arrived; of sup: when all were done
NUM_MSGS = 2
SENT_BY_TMAX = 3
FIRST_ROUND = 4
ROUNDS = 5
HEARD = 6  # numbers of the announcements by which the others first heard the leader, added up
MESSAGES = 7
FIRST_ROUND_TIME = 8
LEADING = 9  # time for which members led by their own word, added up
LEADING_MOST = 10
LEADER = 11  # whom all hold at the end; 0: they do not agree
WATCHED = 12  # when the run ended
CUT = 13  # whether it was given up
COLUMNS = 14
