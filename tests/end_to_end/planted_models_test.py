"""Each model learns a log planted with a model of its own family, to within 0.01 of the best AUC."""
import re

import harness

# Small enough to be learned in seconds, large enough that the best is out of reach for a model of
# another family.
CASES = {
    # model: (teacher, generator flags, model settings, train settings)
    "logistic": ("linear", {}, {}, {"epochs": 2}),
    "wide_deep": ("wide_deep", {}, {"embedding_dim": 8, "hidden": [64, 32]}, {"epochs": 2}),
    "deepfm": ("pairwise", {}, {"embedding_dim": 8, "hidden": [64, 32]}, {"epochs": 3}),
    "dcn_v2": ("crosses", {}, {"embedding_dim": 8, "hidden": [64, 32], "cross_layers": 2}, {"epochs": 3}),
    "dlrm": ("dot", {}, {"embedding_dim": 8, "hidden": [64, 32], "bottom_hidden": [32]}, {"epochs": 3}),
}
RULE = {"kind": "lazy_adam", "learning_rate": 0.003, "epsilon": 1e-8}


class PlantedModels(harness.Case):
    def trained_against_best(self, model):
        teacher, flags, model_settings, train_settings = CASES[model]
        data = self.out(f"data_{model}")
        data.mkdir()
        said = harness.run([harness.program("hdps"), "generate", f"--out={data}", f"--model={teacher}",
                            *[f"--{k}={v}" for k, v in {
                                "rows": 200000, "eval_rows": 40000, "numeric": 4, "categorical": 6,
                                "vocabulary": 100, "zipf": 1.05, "seed": 11, **flags}.items()]]).stdout
        best = float(re.search(r"best reachable AUC[^0-9]*([0-9.]+)", said).group(1))
        job = {
            "name": f"planted_{model}", "seed": 5,
            "data": {"format": "criteo", "train": [f"{data}/train.tsv"], "eval": [f"{data}/eval.tsv"]},
            "model": {"type": model, "wide_optimizer": RULE, "deep_optimizer": RULE,
                      "dense_optimizer": RULE, **model_settings},
            "train": {"batch_size": 512, **train_settings},
            "parallel": {"gradients_mean": True},
        }
        if model == "logistic":
            del job["model"]["deep_optimizer"]
        out = self.out(f"run_{model}")
        auc = harness.train(harness.write_job(self.out(f"{model}.json"), job), out, 1, 1)["eval_auc"]
        print(f"{model:10} planted {teacher:10} best {best:.4f}, reached {auc:.4f} "
              f"({auc - best:+.4f})")
        self.assertGreaterEqual(auc, best - 0.01)
        self.assertGreater(best, 0.7, "a log without signal shows nothing")

    def test_logistic(self):
        self.trained_against_best("logistic")

    def test_wide_deep(self):
        self.trained_against_best("wide_deep")

    def test_deepfm(self):
        self.trained_against_best("deepfm")

    def test_dcn_v2(self):
        self.trained_against_best("dcn_v2")

    def test_dlrm(self):
        self.trained_against_best("dlrm")


if __name__ == "__main__":
    harness.main()
