"""Makes data and a model by hdps itself: a Wide&Deep model over 13 numbers and 26 categories, with a known number of rows."""
import json
import pathlib
import subprocess

MODEL = {"type": "wide_deep", "embedding_dim": 16, "hidden": [256, 128, 64], "device": "cpu",
         # Rows without state, so that the bytes of a checkpoint are those of weights and keys.
         "wide_optimizer": {"kind": "sgd", "learning_rate": 0.05},
         "deep_optimizer": {"kind": "sgd", "learning_rate": 0.05}}
BATCH = 4096
EVAL_ROWS = 20480


def run(*command):
    """Runs a command to its end; returns what it prints."""
    done = subprocess.run([str(word) for word in command], check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"serving.py: error: status {done.returncode} of: {' '.join(map(str, command))}\n"
                         f"{done.stderr[-3000:]}")
    return done.stdout


class Made:
    """A folder with data, a job and a run, which are made where they are missing.

    Each of the 26 columns has `values` values, all as frequent, of which each comes `times` times on average. So
    1 - exp(-times) of them have a row in the table of embeddings, and as many in that of the wide part."""

    def __init__(self, programs, folder, values, times, hidden=None, eval_rows=EVAL_ROWS):
        self.hdps = pathlib.Path(programs) / "hdps"
        self.folder = pathlib.Path(folder)
        self.rows = max(BATCH, int(values * times))
        self.eval = self.folder / "eval.tsv"
        self.out = self.folder / "run"
        self.job = self.folder / "serving.json"
        if not self.eval.exists():
            run(self.hdps, "generate", f"--out={folder}", f"--rows={self.rows}", f"--eval_rows={eval_rows}",
                f"--vocabulary={values}", "--zipf=0", "--seed=39")
        self.job.write_text(json.dumps(
            {"name": "serving", "seed": 1,
             "data": {"format": "criteo", "train": [str(self.folder / "train.tsv")], "eval": []},
             "model": {**MODEL, "hidden": hidden or MODEL["hidden"]},
             "train": {"batch_size": BATCH, "epochs": 1}}))
        if not (self.out / "summary.json").exists():
            self.train()

    def train(self, **settings):
        """Trains, or goes on with the run under other settings."""
        sets = [f"--set={name.replace('__', '.')}={value}" for name, value in settings.items()]
        run(self.hdps, "train", f"--job={self.job}", f"--out={self.out}", *sets)

    def checkpoints(self):
        """The folders of checkpoints by step, ascending."""
        folders = (self.out / "checkpoint").glob("step_*")
        return {int(folder.name.split("_")[1]): folder for folder in sorted(folders)}

    def predictions(self):
        """What hdps predict prints for the evaluation rows."""
        return [float(line) for line in run(self.hdps, "predict", f"--checkpoint={self.out}", "--which=newest",
                                            f"--data={self.eval}").split()]
