# %% [markdown]
# # Own data: train, look at the curves, predict, compare two models
#
# A notebook kept as a script: editors with cells show it as one, and python3 runs it as it is. It needs hdps and
# NumPy; scikit-learn may be there. Here a small table is drawn in the place of your own.

# %%
import tempfile

import numpy as np

import hdps

draw = np.random.default_rng(1)
ROWS = 6000
shops = draw.integers(0, 12, ROWS)  # Integers are keys.
colors = draw.choice(["red", "green", "blue"], ROWS)  # And so are texts.
prices = draw.gamma(2.0, 10.0, ROWS)  # Floats are numbers.
taste = {color: draw.normal(0, 2, 12) for color in ("red", "green", "blue")}
logit = np.array([taste[color][shop] for color, shop in zip(colors, shops)]) - 0.05 * prices
bought = (draw.random(ROWS) < 1 / (1 + np.exp(-logit))).astype(int)

table = {"shop": shops, "color": colors, "price": prices}
seen = {name: column[:5000] for name, column in table.items()}
unseen = {name: column[5000:] for name, column in table.items()}

# %% [markdown]
# ## Train
#
# Settings of the job file have two underscores for the dot. A tenth of the rows is held out for the curves.

# %%
out = tempfile.mkdtemp()
settings = {"data__validation_share": 0.1, "train__batch_size": 50, "train__epochs": 5}
linear = hdps.ClickModel("logistic", out=out, **settings)
deepfm = hdps.ClickModel("deepfm", out=out, model__embedding_dim=8, model__hidden=[16], **settings)
for model in (linear, deepfm):
    model.fit(seen, bought[:5000])
    print(model.recipe, model.job_.warnings, model.summary_["digest"])

# %% [markdown]
# ## Look at the curves

# %%
for model in (linear, deepfm):
    metrics = hdps.read_metrics(model.out_)
    print(model.recipe, [round(auc, 4) for auc in metrics["eval_auc"] if auc == auc])

# %% [markdown]
# ## Compare the two
#
# The page has the curves of both runs beside each other.

# %%
hdps.report(linear.out_, deepfm.out_)

# %%
aucs = {model.recipe: model.score(unseen, bought[5000:]) for model in (linear, deepfm)}
print(aucs)

# %% [markdown]
# ## Predict
#
# Columns are found by their names. What was never seen, as shop 99, reads as its initial value.

# %%
new = {"shop": [3, 99], "color": ["red", "blue"], "price": [12.0, None]}
print(deepfm.classes_, deepfm.predict_proba(new), deepfm.predict(new))

# %% [markdown]
# The folder of a run is all that a later program needs, in Python or by `hdps predict`.

# %%
later = hdps.Model.open(deepfm.out_)
scores = np.asarray(later.predict(unseen))
assert (scores == deepfm.predict_proba(unseen)[:, 1]).all()
