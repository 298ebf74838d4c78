# %% [markdown]
# # Audit a model of texts, and compare remedies
#
# A classifier reads biographies and names the occupation. Does its answer hang on the gender of
# the person told about? We simulate biographies in which it will: occupations differ in how many
# women they have, and who does not read like a typical member of an occupation has fewer of its
# words.

# %%
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import evenhand as eh
from evenhand.simulate.biographies import biographies

bios = biographies(4_000, leak="class_words", seed=1).frame
train, test = bios.head(2_000), bios.tail(2_000)
train.write_parquet("train.parquet")
test.write_parquet("test.parquet")

model = make_pipeline(CountVectorizer(), MultinomialNB())
model.fit(train["text"].to_list(), train["title"].to_list())
print(f"{model.score(test['text'].to_list(), test['title'].to_list()):.2f} decided rightly")

# %% [markdown]
# ## Swap
#
# Each biography is told of the other gender: only the words of a lexicon change.

# %%
print(eh.swap("She lost her keys, and her brother found them for her.", to="male").text)

# %%
from evenhand.text.table import swap_table

print(swap_table("test.parquet", text="text", group="gender", out="swapped.parquet", probe=False))

# %% [markdown]
# ## Score
#
# The model is asked about every text and its swapped twin.

# %%
from evenhand.models.predictor import load_predictor
from evenhand.models.table import score_table

classifier = load_predictor(model)
scores = score_table(
    "swapped.parquet", text="text", truth="title", model=classifier, out="scored.parquet"
)
print(scores)

# %% [markdown]
# ## Norms
#
# A second model, which never sees the occupation, learns how typical of women or of men a text
# reads, without its pronouns and names.

# %%
from evenhand.models.norms.scorer import save_norms
from evenhand.models.norms.table import fit_norms, score_norms

columns = {"text": "text", "truth": "title", "name": "name"}
norms = fit_norms("train.parquet", group="gender", **columns)
save_norms(norms.scorer, "norms")
score_norms("scored.parquet", norms="norms", out="normed.parquet", **columns)
print(*str(norms.card).splitlines()[:5], sep="\n")

# %% [markdown]
# ## Audit
#
# One call looks through every lens that the columns support.

# %%
result = eh.audit(
    "normed.parquet",
    truth="title",
    group="gender",
    reference={"gender": "male"},
    limits={
        "true_positive_rate_gap_rms_corrected": 0.05,
        "counterfactual_true_positive_rate_gap_rms_corrected": 0.02,
        "norm_bias": 0.3,
    },
)
print(result.sentence)
for finding in result.findings:
    if finding.verdict == "outside":
        print("✗", finding.sentence)

# %% [markdown]
# What the words alone do, class by class, beside the whole gap between women and men:

# %%
result.lens("counterfactual").chart()

# %% [markdown]
# Within a group, are those favoured who read like a typical member of it?

# %%
result.lens("norms").chart()

# %% [markdown]
# ## Remedies, side by side
#
# Each is trained on the same rows and measured on every lens, so that what it mends and what it
# leaves stand next to each other.

# %%
ledger = eh.compare(
    "train.parquet",
    "test.parquet",
    text="text",
    truth="title",
    group="gender",
    name="name",
    remedies=["augment", "residualise"],
    texts={"representations": ["bow"]},
    seeds=1,
)
print(ledger)

# %%
ledger.chart()
