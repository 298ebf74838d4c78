"""The papers' tables and figures, made again from one command, beside the printed values."""
