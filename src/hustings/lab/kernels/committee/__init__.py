"""Byzantine committee elections in large groups, by the outcomes of agreements: see `play.py`."""
