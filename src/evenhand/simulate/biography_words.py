"""Words of the simulated biographies: occupations, norms, neutral matter, names and sentences."""

# Female share of each occupation in the public biographies (393,423 of them), from the most to
# the least common occupation.
FEMALE_SHARE = {
    "professor": 0.4512,
    "physician": 0.5077,
    "attorney": 0.3832,
    "photographer": 0.3572,
    "journalist": 0.4949,
    "nurse": 0.9085,
    "psychologist": 0.6223,
    "teacher": 0.6031,
    "dentist": 0.3559,
    "surgeon": 0.1486,
    "architect": 0.2371,
    "painter": 0.4580,
    "model": 0.8283,
    "poet": 0.4908,
    "filmmaker": 0.3296,
    "software_engineer": 0.1577,
    "accountant": 0.3682,
    "composer": 0.1639,
    "dietitian": 0.9274,
    "comedian": 0.2115,
    "chiropractor": 0.2656,
    "pastor": 0.2405,
    "paralegal": 0.8483,
    "yoga_teacher": 0.8455,
    "dj": 0.1421,
    "interior_designer": 0.8086,
    "personal_trainer": 0.4567,
    "rapper": 0.0967,
}

CLASS_WORDS = {
    "accountant": "ledgers audits taxes bookkeeping payroll balances invoices budgets",
    "architect": "buildings facades floorplans skylines blueprints bridges housing zoning",
    "attorney": "litigation contracts courts appeals statutes verdicts testimony settlements",
    "chiropractor": "spines posture adjustments joints backaches vertebrae alignment sprains",
    "comedian": "jokes punchlines sketches stages improvisation satire laughter audiences",
    "composer": "symphonies scores orchestras quartets melodies operas counterpoint overtures",
    "dentist": "teeth gums implants cavities crowns braces enamel molars",
    "dietitian": "nutrition meals vitamins diets calories digestion allergies recipes",
    "dj": "turntables mixes beats clubs vinyl remixes playlists dancefloors",
    "filmmaker": "films documentaries screenplays cameras festivals editing footage premieres",
    "interior_designer": "interiors fabrics furniture lighting wallpaper upholstery kitchens decor",
    "journalist": "headlines newspapers interviews columns sources deadlines reporting newsrooms",
    "model": "runways catwalks portfolios magazines photoshoots castings couture agencies",
    "nurse": "wards bandages vaccinations bedside triage shifts charts hospices",
    "painter": "canvases oils watercolours galleries pigments brushes murals exhibitions",
    "paralegal": "filings briefs affidavits dockets depositions paperwork subpoenas clerks",
    "pastor": "sermons congregations parishes scripture baptisms ministry hymns fellowship",
    "personal_trainer": "workouts gyms weights stamina squats endurance fitness stretching",
    "photographer": "portraits lenses exposures prints darkrooms landscapes weddings shutters",
    "physician": "diagnoses medicine symptoms prescriptions clinics infections diabetes referrals",
    "poet": "verses stanzas sonnets metaphors anthologies rhymes chapbooks readings",
    "professor": "lectures seminars dissertations journals theories campuses grants curricula",
    "psychologist": "therapy anxiety cognition counselling depression behaviour trauma memory",
    "rapper": "lyrics mixtapes freestyles hooks cyphers bars flows samples",
    "software_engineer": "code databases compilers servers algorithms debugging networks programs",
    "surgeon": "operations incisions transplants sutures scalpels anaesthesia grafts tumours",
    "teacher": "classrooms homework lessons pupils grammar arithmetic spelling textbooks",
    "yoga_teacher": "asanas breathing meditation retreats mindfulness mats vinyasa chanting",
}

NORM_WORDS = {
    "female": """family children empathy dance baking flowers community caring romance gardening
        friendship knitting kindness harmony fashion healing storytelling volunteering""",
    "male": """football engines hunting leadership finance gadgets competition carpentry motorcycles
        stadiums golf wrestling strategy machines boxing investing fishing chess""",
}

NEUTRAL_WORDS = """travel history projects cities weekends teams languages museums research planning
    mountains winters cooking books maps radio trains partners offices neighbours evenings summers
    rivers archives workshops studies colleagues schedules regions borders seasons letters markets
    islands meetings questions methods results events programmes records visitors traditions
    conferences bicycles harbours libraries guests parks clouds"""

FIRST_NAMES = {
    "female": """Alice Amara Anna Beatriz Carla Clara Dana Elena Emma Fatima Grace Hana Ines Irene
        Joanna Julia Karen Laura Leila Lucia Maria Mei Monica Nadia Nina Olga Paula Priya Rosa Ruth
        Sara Sofia Susan Tanya Vera Yuki""",
    "male": """Adam Ahmed Albert Andre Boris Carlos Daniel David Diego Edward Emil Felix
        Frank George Hassan Hugo Ivan James Jorge Karl Kenji Leo Luis Marco Martin Miguel Nils Omar
        Oscar Paul Peter Rahul Robert Samuel Thomas Victor""",
}

_SURNAMES = """
    Abara Almeida Banks Bauer Chen Costa Dietrich Dubois Eriksen Farouk Fischer Garza Grant
    Haddad Hansen Ibarra Ito Jansen Kaplan Kaur Keller Kowalski Larsen Lopez Mbeki Meyer
    Moreau Nakamura Novak Okafor Ortega Park Patel Quinn Ramos Rossi Sato Silva Singh Tanaka
    Torres Ueda Vargas Walsh Weber Yilmaz Young Zhang Ziegler
"""
SURNAMES = tuple(_SURNAMES.split())

# {She} {her} {HER} {herself} are pronouns: subject, possessive, object, reflexive; {Ms} a title.
# Every %s is a topic word; a biography is one sentence of each row, about 68 words together.
SENTENCES = (
    (
        "{She} has spent many years on %s, %s and %s, and {her} work has also covered %s.",
        "For many years {she} has been known for %s and %s, and {her} interests include %s and %s.",
        "{She} is best known for %s and %s, although {her} early work was about %s and %s.",
    ),
    (
        "Those who knew {HER} at school remember {her} enthusiasm for %s and %s.",
        "Colleagues often turn to {HER} for advice on %s, and sometimes on %s.",
        "A prize was given to {HER} in recognition of %s and of work on %s.",
    ),
    (
        "{Ms} lives in a town by the sea and describes {herself} as curious about %s, %s and %s.",
        "{Ms} taught {herself} a good deal about %s and %s before moving on to %s and others.",
        "{Ms} grew up near the border and found {herself} drawn to %s, to %s and later to %s.",
    ),
    (
        "In {her} free time {she} enjoys %s, %s and, when there is time, %s with old friends.",
        "Away from the office {she} likes %s and %s, and {her} weekends are for %s.",
        "When {she} is not working, {her} days are filled with %s, with %s and often with %s.",
    ),
)  # fmt: skip
SLOTS = 12
