// Writes the order in which a server takes requests into a file.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/platform/file_system.h"
#include "server/record/order_format.h"

namespace hdps {

struct Job;
struct View;

// The record of one server process, over all groups of which it is the primary. A file that cannot
// be written ends the record, and not the job.
//
// Invariant: entries stand in the order in which requests read and changed rows. What was answered
// or applied once has one entry, whatever the network repeats. Everything before a save is in the
// file when the save is answered, so a job that goes back to a checkpoint finds its record whole.
//
// Used by one thread at a time, as the rows are.
class OrderRecorder {
 public:
  // Makes the file in `folder`, which is made too. Errors: kInvalidArgument if it cannot be.
  static Result<std::unique_ptr<OrderRecorder>> Open(FileSystem& files, const std::string& folder,
                                                     PeerId self, const Job& job);
  ~OrderRecorder();

  // Take an answered pull, an applied push and an advance. `peer` and `request_id` tell repeats.
  void Pulled(ServerId group, WorkerId worker, PeerId peer, uint64_t request_id,
              const PullRequest& pull);
  void Pushed(ServerId group, WorkerId worker, Clock step, uint32_t part);
  void Advanced(ServerId group, WorkerId worker, Clock clock);

  void Entered(const View& view, PeerId self);
  void Loaded(Clock clock) { AddMark(LoadMark{clock}); }
  void Digested(const DigestMark& digest) { AddMark(digest); }
  void Flush();  // Puts everything into the file.

 private:
  OrderRecorder(std::unique_ptr<WritableFile> file, std::string path, const Job& job);
  void Add(ServerId group, const OrderEntry& entry);
  void AddMark(const OrderItem& mark);
  void Write(const std::string& bytes);
  bool IsRepeat(PeerId peer, uint64_t request_id);

  std::unique_ptr<WritableFile> file_;  // Null once it could not be written.
  const std::string path_;
  const bool sync_;  // The order of requests decides nothing, so none is written.
  OrderEncoder encoder_;
  std::optional<ServerId> group_;  // Of the last entry.
  std::map<std::pair<ServerId, WorkerId>, Clock> advanced_;
  std::map<PeerId, std::deque<uint64_t>> answered_;  // The last pulls of each worker's process.
};

// One group's place in the record of its server.
struct GroupOrder {
  OrderRecorder* recorder = nullptr;  // Null: nothing is recorded.
  ServerId group = {};

  void Pulled(WorkerId worker, PeerId peer, uint64_t request_id, const PullRequest& pull) const {
    if (recorder != nullptr) recorder->Pulled(group, worker, peer, request_id, pull);
  }
  void Pushed(WorkerId worker, Clock step, uint32_t part) const {
    if (recorder != nullptr) recorder->Pushed(group, worker, step, part);
  }
  void Advanced(WorkerId worker, Clock clock) const {
    if (recorder != nullptr) recorder->Advanced(group, worker, clock);
  }
};

}  // namespace hdps
