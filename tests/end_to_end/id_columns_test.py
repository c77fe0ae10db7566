"""Tests tables by id: the rows of ids, ids without a row, and what is no id, by the real programs."""
import math
import random

import harness

HDPS = harness.program("hdps")
USERS, TAGS = 60, 20
ROWS, BATCH, STEPS = 400, 100, 12
RATE = 0.5


class IdColumns(harness.Case):
    def setUp(self):
        super().setUp()
        chance = random.Random(4)
        # Every tenth user and every fifth tag is beyond the table.
        self.rows = [(chance.randrange(2), chance.randrange(USERS * 10 // 9),
                      [chance.randrange(TAGS * 5 // 4) for _ in range(chance.randrange(4))])
                     for _ in range(ROWS)]
        self.unknown = sum((user >= USERS) + sum(tag >= TAGS for tag in tags) for _, user, tags in self.rows)
        self.text = "".join(f"{y},{user},{'|'.join(map(str, tags))}\n" for y, user, tags in self.rows)
        self.out("ids.csv").write_text(self.text)
        self.job = self.write("ids", {"vocab_size": USERS}, {"vocab_size": TAGS})

    def write(self, name, user, tags, model=None):
        plain = {"type": "logistic", "wide_optimizer": {"kind": "sgd", "learning_rate": RATE},
                 "dense_optimizer": {"kind": "sgd", "learning_rate": RATE}}
        return harness.write_job(self.out(f"{name}.json"), {
            "name": name, "data": {"train": [f"{name}.csv"], "eval": [f"{name}.csv"], "shuffle_rows": 0, "columns": [
                {"name": "y", "type": "label"}, {"name": "user", **user}, {"name": "tags", "type": "multi", **tags}]},
            "model": {**(model or plain), "device": "cpu"}, "parallel": {"gradients_mean": True},
            "train": {"batch_size": BATCH, "epochs": STEPS * BATCH // ROWS, "eval_each_epoch": False}})

    def predict(self, run, data, *flags, expect=0):
        return harness.run([HDPS, "predict", f"--checkpoint={self.out(run)}", f"--data={self.out(data)}", *flags],
                           expect=expect)

    def scores(self, run, data):
        return [float(line) for line in self.predict(run, data).stdout.split()]

    def reference(self):
        """Logistic regression by gradient descent in double precision: a weight an id, and a bias."""
        user_weights, tag_weights, bias = [0.0] * USERS, [0.0] * TAGS, 0.0

        def known(user, tags):
            return [user] * (user < USERS), [tag for tag in tags if tag < TAGS]

        def probability(user, tags):
            users, tags = known(user, tags)
            logit = bias + sum(user_weights[u] for u in users) + sum(tag_weights[t] for t in tags)
            return 1 / (1 + math.exp(-logit))

        for step in range(STEPS):
            begin = step * BATCH % ROWS
            batch = self.rows[begin:begin + BATCH]
            errors = [(probability(user, tags) - y) / BATCH for y, user, tags in batch]
            for error, (_, user, tags) in zip(errors, batch):
                users, tags = known(user, tags)
                for u in users:
                    user_weights[u] -= RATE * error
                for t in tags:
                    tag_weights[t] -= RATE * error
                bias -= RATE * error
        return [probability(user, tags) for _, user, tags in self.rows]

    def test_ids_train_what_a_reference_trains(self):
        digests = set()
        for servers in (1, 2, 3):
            summary = harness.train(self.job, self.out(f"run_{servers}"), servers)
            digests.add(summary["digest"])
            self.assertEqual(summary["unknown_ids"], self.unknown * STEPS * BATCH // ROWS)
        self.assertEqual(len(digests), 1)
        self.assertLessEqual(summary["rows"], USERS + TAGS)
        difference = max(abs(a - b) for a, b in zip(self.scores("run_3", "ids.csv"), self.reference()))
        harness.figure(f"ids over 1, 2 and 3 servers: one digest, {summary['unknown_ids']} ids without a row, "
                       f"predictions within {difference:.2g} of a reference in double precision")
        # A weight takes at most a hundred roundings a step, each of half a unit of 2^-24 of numbers below 4.
        self.assertLessEqual(difference, STEPS * BATCH * 4 * 2 ** -25)

    def test_ids_without_a_row_are_as_if_they_were_not_there(self):
        """A deep model gives the same bits where these ids are left out, for any number of workers."""
        model = {"type": "wide_deep", "embedding_dim": 4, "hidden": [8]}
        job = self.write("ids", {"vocab_size": USERS}, {"vocab_size": TAGS}, model)
        self.out("bare.csv").write_text("".join(
            f"{y},{user if user < USERS else ''},{'|'.join(str(t) for t in tags if t < TAGS)}\n"
            for y, user, tags in self.rows))
        bare = self.write("bare", {"vocab_size": USERS}, {"vocab_size": TAGS}, model)
        ids, left_out = harness.train(job, self.out("ids"), 2, 2), harness.train(bare, self.out("bare"))
        parts = harness.train(bare, self.out("parts"), sets={"train.micro_batches": "2"})
        self.assertEqual(ids["digest"], parts["digest"])
        self.assertEqual((ids["unknown_ids"], left_out["unknown_ids"]), (self.unknown * STEPS * BATCH // ROWS, 0))
        self.assertEqual(self.scores("parts", "ids.csv"), self.scores("parts", "bare.csv"))
        # An example without any row has what the dense layers make of zeros.
        self.out("zeros.csv").write_text(f"{USERS},{TAGS}\n,\n{10 ** 30},{TAGS}|{TAGS + 1}\n")
        done = self.predict("ids", "zeros.csv")
        self.assertEqual(len(set(done.stdout.split())), 1)
        self.assertIn("5 ids from their vocab_size on read as zeros", done.stderr)
        told = harness.run([HDPS, "evaluate", f"--checkpoint={self.out('ids')}", f"--data={self.out('ids.csv')}"])
        self.assertIn(f"unknown ids {self.unknown},", told.stdout)
        harness.run([HDPS, "report", self.out("ids")])
        self.assertIn("ids without a row", (self.out("ids") / "report.html").read_text())
        self.look_inside()

    def look_inside(self):
        def row(key, expect=0):
            done = harness.run([HDPS, "inspect", f"--checkpoint={self.out('ids')}", f"--row=deep:user={key}"],
                               expect=expect)
            return done.stdout + done.stderr

        trained = self.rows[0][1] % USERS
        self.assertIn("it has been updated", row(trained))
        self.assertEqual(row(trained), row(f"00{trained}"))
        self.assertIn(f"expected a whole number from 0 to {USERS - 1}", row(USERS, 2))

    def test_the_count_goes_on_with_the_job(self):
        harness.train(self.job, self.out("run"), sets={"train.max_steps": STEPS // 2})
        resumed = harness.train(self.job, self.out("run"), 2)
        self.assertEqual(resumed["unknown_ids"], self.unknown * STEPS * BATCH // ROWS)
        self.assertEqual(resumed["digest"], harness.train(self.job, self.out("whole"))["digest"])

    def test_what_is_no_id_ends_the_job_with_its_place(self):
        for bad in ("-4", "4.5", "four"):
            self.out("ids.csv").write_text(f"1,3,1\n0,{bad},1\n" + self.text)
            done = harness.train(self.job, self.out("bad"), expect=2)
            self.assertIn(f"ids.csv:2:3: '{bad}': expected an id: a whole number from 0 on in column 'user'",
                          done.stderr)


if __name__ == "__main__":
    harness.main()
