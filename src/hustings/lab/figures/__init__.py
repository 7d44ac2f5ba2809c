"""The papers' tables and figures, reproduced and compared with what the papers print."""
