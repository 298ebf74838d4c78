"""Labels from the exports of labelling tools, as a table that an audit reads."""
