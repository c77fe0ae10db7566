// Sends HTTP requests at planned times over some connections, and measures when their answers come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct LoadPlan {
  std::string server;                 // HOST:PORT
  std::vector<std::string> requests;  // Whole ones, as they are sent; in turns.
  // Requests that become due in a second, whether or not earlier ones were answered. 0: each
  // connection sends the next request when it has the answer to its last one.
  double requests_a_second = 0;
  bool random_gaps = false;  // Exponential gaps between planned times, instead of even ones.
  int connections = 16;
  double seconds = 10;
};

// One request: when it was due, was sent and was answered.
struct LoadSample {
  int64_t due_ns = 0, sent_ns = 0, answered_ns = 0;  // Since the begin.
  int status = 0;                                    // Of HTTP; 0: no answer came.
};

// One version of the model as answers named it.
struct SeenVersion {
  uint64_t answers = 0;
  double first_seen = 0;  // Unix time.
};

struct LoadReport {
  std::vector<LoadSample> samples;           // In the order of their answers.
  std::map<std::string, uint64_t> failures;  // Requests without an answer of status 200, by reason.
  std::string first_failure;                 // Body of the first answer of another status.
  std::map<std::string, SeenVersion> versions;  // By "model_version".
  // Answers that differ from an earlier one to the same request by the same version.
  uint64_t changed_answers = 0;
  std::vector<std::string> answers;  // [requests]: the first one to each with status 200, whole.
};

// Runs the plan on this thread. Latency counts from the time at which a request was due, so an
// answer that comes late also counts for the requests that could not be sent meanwhile: otherwise a
// load that waits for answers leaves out what the server's pauses cost ("coordinated omission", Gil
// Tene, How NOT to Measure Latency, 2013). kInvalidArgument if the plan or a request is wrong;
// kUnavailable if nobody listens.
Result<LoadReport> RunLoad(const LoadPlan& plan);

// Splits a text of whole HTTP messages, one behind the other, each with a Content-Length.
Result<std::vector<std::string>> SplitMessages(const std::string& text);

}  // namespace hdps
