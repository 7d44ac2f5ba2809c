"""What a kernel writes for each run: one row of numbers, times in ticks."""

from __future__ import annotations

TMAX = 0
COMPLETE = 1  # when the announcement that was sent at tmax arrived; of sup: when all had finished
NUM_MSGS = 2
SENT_BY_TMAX = 3
FIRST_ROUND = 4
ROUNDS = 5
HEARD = 6  # the sum of the numbers of the announcements by which the others first heard the leader
MESSAGES = 7
FIRST_ROUND_TIME = 8
LEADING = 9  # the sum of the times for which members led by their own announcements
LEADING_MOST = 10
LEADER = 11  # the member that all hold at the end; 0: they do not agree
WATCHED = 12  # when the run ended
CUT = 13  # whether it was given up
COLUMNS = 14
