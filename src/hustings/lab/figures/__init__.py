"""The papers' tables and figures, reproduced and put beside what they print."""
