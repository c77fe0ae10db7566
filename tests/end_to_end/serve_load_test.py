"""Runs the load of benchmarks/serving against hdps serve for moments: every answer comes and is right; no figure is judged."""
import sys

import harness

sys.path.insert(0, str(harness.ROOT / "benchmarks" / "serving"))
import inference_requests as requests  # noqa: E402
import joined  # noqa: E402
import made_model  # noqa: E402
import refresh  # noqa: E402
import serving  # noqa: E402
from measured_server import MODEL, Load, hdps_server  # noqa: E402

SECONDS = 0.3
EVAL_ROWS = 1024


class ServeLoad(harness.Case):
    def made(self):
        """A run whose table has most of 26 x 500 values."""
        return made_model.Made(harness.BIN, self.out("made"), 500, 1, hidden=[16], eval_rows=EVAL_ROWS)

    def test_every_form_is_answered_with_the_bits_of_predict(self):
        made = self.made()
        rows = requests.rows_of(made.eval, EVAL_ROWS)
        with hdps_server(harness.BIN, made.out) as server:
            loads = serving.loads_of(harness.BIN, self.out(""), server.host, rows)
            serving.check_answers(loads, server, self.out(""), made.predictions(), SECONDS)
            for name in ("json, 32 rows", "binary, 32 rows"):
                for gaps in ("even", "random"):
                    found = loads[name].run(server, rate=3200, seconds=SECONDS, gaps=gaps)
                    self.assertEqual(found["failures"], {}, found)
                    self.assertEqual(found["answered"], found["requests"])
                    harness.figure(f"{name}, {gaps} gaps: p50 {found['p50_ms']:.2f} ms, p99 {found['p99_ms']:.2f} ms")
        self.assertEqual(server.stop(), 0, server.said())
        self.assertGreater(serving.scoring_rate(harness.BIN, made, SECONDS, 2), 0)

    def test_a_newer_checkpoint_comes_under_load(self):
        made = self.made()
        made.train(train__epochs=2)
        older, newer = made.checkpoints()
        arrivals = refresh.Arrivals(made, self.out("served"))
        arrivals.add(older)
        rows = requests.rows_of(made.eval, EVAL_ROWS)
        with hdps_server(harness.BIN, self.out("served")) as server:
            load = Load(harness.BIN, self.out(""), "refresh", [requests.as_json(server.host, MODEL, batch)
                                                               for batch in requests.batches(rows, 32)], 32)
            found = refresh.under_load(load, server, 3200, 4, [lambda: arrivals.add(newer)], first_after=0.5)
        self.assertEqual(found["failures"], {}, found)
        self.assertEqual(found["changed_answers"], 0)
        self.assertEqual(sorted(map(int, found["versions"])), [older, newer])
        seconds, = refresh.seen_after(found, arrivals.came, [newer])
        harness.figure(f"answers by a newer checkpoint {seconds:.2f} s after its manifest; p99 {found['p99_ms']:.2f} ms")

    def test_requests_of_one_row_join(self):
        made = self.made()
        measured = serving.Measured()
        rows = requests.rows_of(made.eval, EVAL_ROWS)
        joined.measure(harness.BIN, self.out(""), made, rows, measured, repeats=1, seconds=SECONDS)
        alone = [line for line in joined.lines_of(measured) if "wait 0 us: rows a batch" in line[0]]
        self.assertEqual([line[1] for line in alone], [1.0] * len(joined.CONNECTIONS))
        most = f"{max(joined.CONNECTIONS)} connections"
        of_waits = [(measured.median(f"{most}, wait {wait} us: rows a batch"), wait) for wait in joined.WAITS_US]
        self.assertGreater(of_waits[-1][0], 1)
        harness.figure(f"{most}: " + ", ".join(f"{rows:.1f} rows a batch with a wait of {wait} us" for rows, wait in of_waits))

    def test_mistakes_are_named(self):
        load = harness.program("hdps-load")
        for flags, said in ((["--server=here"], "--requests"), ([], "--server"),
                            (["--server=127.0.0.1:1", "--requests=none"], "none"),
                            (["--checkpoint=none", "--data=none", "--calls=0"], "--calls=0"),
                            (["--server=127.0.0.1:1", "--requests=none", "--gaps=odd"], "--gaps=odd")):
            self.assertIn(said, harness.run([load, *flags], expect=2).stderr)


if __name__ == "__main__":
    harness.main()
