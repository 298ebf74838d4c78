"""The three layers of a decision and the questions each has to answer in words."""

LAYERS = ("product", "policy", "implementation")

# Who is asked, in words, and the questions by their keys in the charter.
ASKED = {
    "product": "whoever leads the product",
    "policy": "whoever owns the rules",
    "implementation": "engineers and label operations",
}
QUESTIONS: dict[str, dict[str, str]] = {
    "product": {
        "serves_everyone": "Does what it sets out to do serve everyone it affects?",
        "whose_interests": "Whose interests give way to whose, and how far?",
        "without_a_person": "Should a machine act here without a person?",
    },
    "policy": {
        "fits_every_group": "Does the rule, as written, fit the lives of every group it will be "
        "applied to?",
        "what_counts": "What exactly counts as a violation, and does it matter whom it is aimed "
        "at; who is protected?",
        "which_mistake_hurts": "Which mistake hurts whom, and how badly: the person who made the "
        "thing, those who see it, those it is about?",
    },
    "implementation": {
        "labelers_follow": "Do the people who label follow the rule?",
        "models_balance": "Do the models strike the chosen balance for every group?",
    },
}
