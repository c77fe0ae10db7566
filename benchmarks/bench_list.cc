// Lists the benchmarks: name, function (in <name>_bench.cc), and the question it answers.
#include "benchmarks/bench.h"

#define HDPS_BENCHES(BENCH)                                                                        \
  BENCH(cache, RunCacheBench, "what does it give to keep the hot rows at the worker?")             \
  BENCH(checkpoint, RunCheckpointBench, "how fast are rows saved and loaded; what does it cost?")  \
  BENCH(constants, RunConstantsBench, "what hdps plan must know of this machine")                  \
  BENCH(dense_exchange, RunDenseExchangeBench,                                                     \
        "dense gradients together, beside backward, their update split")                           \
  BENCH(device, RunDeviceBench, "a step on a GPU beside its products, the bus and the memory")     \
  BENCH(disk_tier, RunDiskTierBench,                                                               \
        "what a table larger than memory costs, and one that forgets")                             \
  BENCH(end_to_end, RunEndToEndBench, "examples/s of whole jobs, and where a step's time goes")    \
  BENCH(flat_rows, RunFlatRowsBench, "rows of a served batch, beside copies of known rows")        \
  BENCH(http, RunHttpBench, "requests/s of the thread that answers HTTP")                          \
  BENCH(interleave, RunInterleaveBench, "what copies that take turns hide of a step's exchanges")  \
  BENCH(lookahead, RunLookaheadBench,                                                              \
        "a step whose rows were asked for while the last was computed")                            \
  BENCH(model, RunModelBench, "a step without servers, first layer plain and on unique rows")      \
  BENCH(outside, RunOutsideBench, "pull, push and end of a step for a program's own model")        \
  BENCH(plan, RunPlanBench, "does hdps plan tell the truth? clusters predicted and run")           \
  BENCH(pullpush, RunPullPushBench, "rows/s from the socket to the row and back; round trip")      \
  BENCH(reader, RunReaderBench, "how fast is text parsed, hashed and shuffled on one core?")       \
  BENCH(recovery, RunRecoveryBench, "a server is killed: when does training go on, what is lost?") \
  BENCH(reduction, RunReductionBench, "sums over ranks, in order and by Gloo's own allreduce")     \
  BENCH(request_forms, RunRequestFormsBench, "requests read: JSON, binary tensors, rows by name")  \
  BENCH(scores, RunScoresBench, "rows of files scored a second, beside the forward products")      \
  BENCH(strategies, RunStrategiesBench, "are the costs by which strategies are chosen true?")      \
  BENCH(table, RunTableBench, "rows read, updated and made, beside the same lines walked")         \
  BENCH(telemetry, RunTelemetryBench, "what the counters of a step cost")                          \
  BENCH(updates, RunUpdatesBench, "a large step's distinct keys, FTRL and lazy Adam on the host")  \
  BENCH(wire, RunWireBench, "GB/s both ways at once, round trip, checksums, buffers")

namespace hdps {

#define HDPS_DECLARE(name, run, question) \
  Status run(const BenchSetting&, FileSystem&, BenchReport&);
HDPS_BENCHES(HDPS_DECLARE)
#undef HDPS_DECLARE

std::span<const BenchEntry> AllBenches() {
#define HDPS_ENTRY(name, run, question) {#name, question, run},
  static constexpr BenchEntry kBenches[] = {HDPS_BENCHES(HDPS_ENTRY)};
#undef HDPS_ENTRY
  return kBenches;
}

}  // namespace hdps
