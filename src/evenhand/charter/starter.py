"""The starter that `evenhand charter new` prints.

Lines that begin with `#` and no space are switched off: they are valid as soon as the mark is
taken away, which a test does.
"""

STARTER = """\
# A charter: which trade-offs were chosen, by whom, until when and why.
# Fill in what is empty, take the mark off the lines that begin with # and no space, and review
# the file as you would review code. Check it with: evenhand charter check charter.toml
schema = "evenhand.charter/1"

[system]
name = ""                       # such as "Comment moderation"
decision = ""                   # what a positive decision does, such as "remove the comment"
# What your people call the two mistakes. Irregular plurals: ["loss", "losses"].
#false_positive = "wrongful removal"
#false_negative = "missed violation"

# --- Product: asked of whoever leads the product --------------------------------------------
[product]
owner = ""
date = ""                       # when this was settled, such as 2026-01-31
consulted = []                  # who was heard; people who are affected belong here
# Does what it sets out to do serve everyone it affects?
serves_everyone = ""
# Whose interests give way to whose, and how far?
whose_interests = ""
# Should a machine act here without a person?
without_a_person = ""

# --- Policy: asked of whoever owns the rules ------------------------------------------------
[policy]
owner = ""
date = ""
consulted = []
# Does the rule, as written, fit the lives of every group it will be applied to?
fits_every_group = ""
# What exactly counts as a violation, and does it matter whom it is aimed at; who is protected?
what_counts = ""
# Which mistake hurts whom, and how badly: the person who made the thing, those who see it,
# those it is about?
which_mistake_hurts = ""

# --- Implementation: asked of engineers and label operations --------------------------------
[implementation]
owner = ""
date = ""
# Do the people who label follow the rule?
labelers_follow = ""
# Do the models strike the chosen balance for every group?
models_balance = ""

# --- Stakeholders, and what each outcome costs or brings them -------------------------------
#[[stakeholders]]
#name = "people who comment"
#interest = "being heard"
#consulted = false

#[[stakeholders]]
#name = "people who read"
#interest = "not being insulted"
#consulted = false

# outcome: false_positive, false_negative, true_positive or true_negative.
# kind: cost or benefit. Where a group bears more than others, name it in a line of its own.
#[[catalogue]]
#outcome = "false_positive"
#kind = "cost"
#borne_by = "people who comment"
#what = "A harmless comment disappears and its writer is silenced."

#[[catalogue]]
#outcome = "false_negative"
#kind = "cost"
#borne_by = "people who read"
#what = "An insult stays up."

#[[catalogue]]
#outcome = "true_positive"
#kind = "benefit"
#borne_by = "people who read"
#what = "An insult is gone before many have seen it."
#attribute = "gender"
#group = "female"

# --- Choices: how many false positives does one false negative count as? --------------------
# cost_ratio = 4 means: act from a probability of 1/(1+4) = 20 % on.
# tolerance = 1.25 means 4/1.25 to 4*1.25; or give both ends, such as [3, 5].
# positive_is: is a positive decision a benefit or a burden for the person decided about?
#[[choices]]
#cost_ratio = 4
#tolerance = 1.25
#positive_is = "burden"
#decided_by = ""
#decided_on = ""
#review_by = ""
#reason = ""

# A choice for one group overrides the one for all.
#[[choices]]
#attribute = "gender"
#group = "female"
#cost_ratio = 5
#tolerance = [4, 6.5]
#decided_by = ""
#decided_on = ""
#review_by = ""
#reason = ""

# For a pair, cross two group columns in the order producer*consumer:
#   attribute = "writer_group*reader_group"
#   group = "a*b"

# --- Limits for other measures (evenhand audit --list-measures) -----------------------------
#[limits]
#true_positive_rate_gap = 0.05          # -0.05 to 0.05
#selection_rate_ratio = 0.8             # 0.8 to 1.25
#precision = [0.7, 1]

# --- What is known from elsewhere -----------------------------------------------------------
# Share of true cases among all that labelers see, where the audited sample is enriched.
#[prevalence]
#all = 0.02

#[prevalence.gender]
#female = 0.03

# How good the truth itself is: how often it says so of what is so, and of what is not.
#[truth_quality]
#all = {sensitivity = 0.95, specificity = 0.99}

# --- Columns, so that `evenhand audit DATA --charter charter.toml` needs no flags -----------
#[roles]
#truth = "violates"
#score = "score"
#threshold = 0.8
#group = "gender"
"""
