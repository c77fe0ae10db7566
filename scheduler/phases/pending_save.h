// A checkpoint whose rows were copied, and whose files are written while training goes on.
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

// A checkpoint to be committed, and its first fault; empty: none.
struct NewCheckpoint {
  Manifest manifest;
  std::string fault;
};

// Invariant: at most one save is pending, in whatever phase. It becomes a checkpoint when every
// server has reported its files; if a server could not write them, nothing of it is left.
class PendingSave {
 public:
  using Say = std::function<void(const std::string&)>;
  PendingSave(CheckpointCatalog& checkpoints, const WorkerFacts& facts, Say notice)
      : checkpoints_(checkpoints), facts_(facts), notice_(std::move(notice)) {}

  bool under_way() const { return save_.has_value(); }
  // Asks the servers in `writing` for their files, once they are written.
  void Await(NewCheckpoint save, const std::vector<PeerId>& writing, Orders& orders);
  // Adds the files of one server; `fault`: why it could not write them, or empty.
  void Add(const std::vector<SavedFile>& files, const std::string& fault);
  // Commits after all servers have answered. Returns the clock of the checkpoint; none if it
  // failed.
  std::optional<Clock> Complete();
  void Drop(const std::string& why);
  void Forget() { save_.reset(); }  // Going back to a checkpoint removes unfinished ones.

  // Makes it a checkpoint. Returns the fault, or an empty text.
  std::string Commit(NewCheckpoint save);
  std::string NotSaved(Clock clock, const std::string& fault) const;  // Text of a warning.

 private:
  CheckpointCatalog& checkpoints_;
  const WorkerFacts& facts_;
  const Say notice_;
  std::optional<NewCheckpoint> save_;
};

}  // namespace hdps
