# %% [markdown]
# # Audit a table, from start to finish
#
# A model removes posts. We simulate what it decided, plant a bias, and see whether an audit finds
# what was planted, and nothing else. Your own table takes the place of the simulated one:
# Parquet, CSV, pandas, Polars, DuckDB or Spark.

# %%
from evenhand.simulate.moderation import Group, moderation

CUTS = {"female": 0.6, "male": 0.6, "nonbinary": 0.35}
SHARES = {"female": 0.44, "male": 0.44, "nonbinary": 0.12}
posts = moderation(
    60_000,
    groups={g: Group(share=SHARES[g], base_rate=0.12, threshold=CUTS[g]) for g in CUTS},
    seed=1,
)
posts.frame.write_parquet("posts.parquet")
print(posts.frame.columns, *posts.frame.head(3).rows(), sep="\n")

# %% [markdown]
# Posts by nonbinary people go from a score of 0.35 on, everybody else's from 0.6 on. All groups
# break the rules equally often, and the score is as good for each of them.
#
# ## Look first
#
# Say what each column is for, and audit. Without a limit nothing is judged; every number has its
# interval and the number of cases behind it.

# %%
import evenhand as eh

decisions = eh.Decisions(
    "posts.parquet",
    truth="violates",
    score="score",
    threshold=CUTS,
    group="gender",
    reference={"gender": "male"},
    positive_is="burden",
)
eh.audit(decisions, lenses=["statistical"])

# %% [markdown]
# ## Agree on limits
#
# A charter records which trade-off was chosen, by whom and why. Its words turn up in the
# findings, and its numbers become limits: here one missed violation counts as four wrongful
# removals, give or take a factor of 1.5, and true positive rates may differ by ten points.

# %%
CHARTER = """
schema = "evenhand.charter/1"

[system]
name = "Comment removal"
decision = "remove a post"
false_positive = "wrongful removal"
false_negative = "missed violation"

[limits]
true_positive_rate_gap = 0.1

[[choices]]
cost_ratio = 4.0
tolerance = 1.5
decided_by = "the policy council"
decided_on = 2026-03-03
reason = "A wrongful removal can be appealed."

[product]
owner = "the product lead"
[policy]
owner = "the policy council"
[implementation]
owner = "the model team"
"""
with open("charter.toml", "w") as file:
    file.write(CHARTER)

result = eh.audit(decisions, charter="charter.toml")
print(result.verdict)
result

# %% [markdown]
# ## Group by group
#
# Every result is a row with the same columns, so any question is a filter. What do decisions
# imply for each group: from which chance of a violation on is a post removed?

# %%
for row in result.rows.where(measure="implied_threshold", class_="1"):
    print(f"{row['group']:>10}: {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]")

# %%
frame = result.to_frame()  # the same rows as a Polars data frame
rates = frame.filter(measure="true_positive_rate", **{"class": "1"})
for group, value, low, high, n in rates.select("group", "value", "low", "high", "n").rows():
    print(f"{group:>10}: {value:.3f} [{low:.3f}, {high:.3f}], {n:.0f} posts that break the rules")

# %% [markdown]
# ## A picture
#
# Every chart of the report can be had by itself.

# %%
result.lens("thresholds").chart()

# %% [markdown]
# ## Keep and share it
#
# The record says everything, including what was left out. The page is one file without script
# that can be mailed; it is drawn from the record alone.

# %%
from pathlib import Path

from evenhand.report.page import as_page

Path("audit.json").write_text(result.to_json())
Path("report.html").write_text(as_page(eh.read_record("audit.json")))
print(*sorted(path.name for path in Path().iterdir()), sep="\n")

# %% [markdown]
# ## Hold a gate
#
# In a test, or before a model is shipped: `check` raises where something lies outside its limit,
# exactly where the command line exits 1.

# %%
try:
    eh.check(result)
except eh.EvenhandError as error:
    print(error)

# %% [markdown]
# What was planted was found. And in a system with one cut for all? Nothing is shown to lie
# outside; where the data are too few to say so, the audit says that.

# %%
one_cut = {g: Group(share=SHARES[g], base_rate=0.12, threshold=0.6) for g in CUTS}
equal = eh.audit(
    moderation(60_000, groups=one_cut, seed=1).frame,
    truth="violates",
    score="score",
    threshold=0.6,
    group="gender",
    charter="charter.toml",
)
print(equal.sentence)
