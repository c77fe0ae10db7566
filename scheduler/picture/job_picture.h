// The state of a job at one moment, for all who look at it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/job/words/setting_origin.h"
#include "common/net/node.h"
#include "common/telemetry/figure_layout.h"
#include "common/telemetry/samples.h"
#include "scheduler/picture/run_history.h"
#include "scheduler/report/run_report.h"

namespace hdps {

struct StatusReply;

// What stays the same while a scheduler process runs.
struct PictureFrame {
  std::string job, out, resume_command;
  uint32_t epochs = 1;
  Clock max_steps = 0;              // 0: no limit.
  std::vector<std::string> tables;  // Whose rows servers tell: all but the dense one.
  std::vector<SettingOrigin> settings;
  FigureLayout workers, servers;
  uint32_t heartbeat_ms = 0;
  uint64_t first_version = 0;  // A reader of an earlier one has looked at another process.
};

struct MemberPicture {
  std::string name, process;  // "worker 1 (host-a:4711)", "host-a:4711"
  bool worker = false;
  uint32_t rank = 0;
  const char* state = "alive";               // Or "silent", "deaf", or "missing": it is lost.
  std::shared_ptr<const Readings> readings;  // Null: none were heard.
  std::vector<double> stage_seconds = {};    // As MemberPace::StageSeconds().
  double ratio = 0;                          // As in MemberPace, likewise the next two.
  uint64_t slow_count = 0;
  bool straggler = false;
};

// The rest of the expected ones is missing.
struct MemberCounts {
  uint32_t alive = 0, silent = 0, expected = 0;
};

// A copy that never changes; readers on any thread make their texts from it.
struct JobPicture {
  uint64_t version = 0;  // Grows from picture to picture, also over a restart of the scheduler.
  TimeMs made_at = 0;    // By the scheduler's clock.
  double time = 0;       // Seconds since 1970.
  std::shared_ptr<const PictureFrame> frame;
  std::shared_ptr<const RunHistory> history;
  // The members' states, and those of about a second before; null in the first second.
  std::shared_ptr<const StatusReply> status, before;
  int64_t apart_ms = 0;
  std::optional<std::string> ended;  // The reason why the job is over.
  bool failed = false;
  ProgressState progress;
  uint64_t examples = 0;      // Of the job, counted as its steps are.
  std::string progress_line;  // As the terminal shows it.
  MemberCounts workers, servers;
  std::vector<std::string> arithmetic;  // As in Manifest.
  std::vector<MemberPicture> members;   // In the order of status->members.
  std::vector<Sample> own;              // Figures of the scheduler and of its process.
};

}  // namespace hdps
