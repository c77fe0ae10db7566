// A checkpoint whose rows are taken, and whose files are written while training goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/manifest.h"

namespace hdps {

struct SavedFile;

class CheckpointCatalog;
class WorkerFacts;
struct Orders;

// Files that are to become a checkpoint, and what is wrong with them; empty: nothing.
struct NewCheckpoint {
  Manifest manifest;
  std::string fault;
};

// Invariant: at most one is on its way, whatever the phase at hand; it becomes a checkpoint when
// every server has told of its files, and leaves nothing behind where one could not write them.
class PendingSave {
 public:
  using Say = std::function<void(const std::string&)>;
  PendingSave(CheckpointCatalog& checkpoints, const WorkerFacts& facts, Say notice)
      : checkpoints_(checkpoints), facts_(facts), notice_(std::move(notice)) {}

  bool under_way() const { return save_.has_value(); }
  // Asks the servers that are still writing for their files.
  void Await(NewCheckpoint save, const std::vector<PeerId>& writing, Orders& orders);
  // One has written them; `fault`: why it has not.
  void Add(const std::vector<SavedFile>& files, const std::string& fault);
  // All have. The clock of the checkpoint; none: it was not to be.
  std::optional<Clock> Complete();
  void Drop(const std::string& why);
  void Forget() { save_.reset(); }  // Who goes back to a checkpoint removes what is no checkpoint.

  // Makes it a checkpoint. What is wrong with it; empty: it is one now.
  std::string Commit(NewCheckpoint save);
  std::string NotSaved(Clock clock, const std::string& fault) const;  // For people.

 private:
  CheckpointCatalog& checkpoints_;
  const WorkerFacts& facts_;
  const Say notice_;
  std::optional<NewCheckpoint> save_;
};

}  // namespace hdps
