// Writes the curves of a run for TensorBoard.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/platform/file_system.h"
#include "scheduler/report/write_trouble.h"

namespace hdps {

// Turns lines of metrics.jsonl into points of curves: the training loss, the learning rate,
// examples per second, and each figure of an evaluation. Curves are named as the figures of the
// list.
//
// The files are FOLDER/events.out.tfevents.SECONDS.hdps and sort by the time they began. Each tells
// the job's settings. Where writing fails, the next line begins another file, because a record that
// was cut off hides what follows it.
//
// Invariant: each file begins with its version, and whole records follow, but for the last one of a
// file whose writing failed. Nothing that was there before is changed.
class EventFile {
 public:
  // `settings`: a text in Markdown. `unix_seconds`: returns the time in seconds since 1970.
  // Requires: CanWriteEvents().
  EventFile(FileSystem& files, std::string folder, std::string settings,
            std::function<double()> unix_seconds);
  ~EventFile();

  // Takes a line of metrics.jsonl. One without a figure for a curve writes nothing.
  void TakeLine(const std::string& line);
  // Returns an error of writing, as WriteTrouble does.
  std::optional<std::string> TakeTrouble() { return trouble_.Take(); }

 private:
  Status Begin();
  Status Write(const std::string& records);

  FileSystem& files_;
  const std::string folder_, settings_;
  const std::function<double()> unix_seconds_;
  std::unique_ptr<WritableFile> file_;  // Null before Begin(), and after a failed write.
  bool has_points_ = false;             // In this file.
  WriteTrouble trouble_;
};

}  // namespace hdps
