// Writes one pack a checkpoint, on the background thread.
#include "server/checkpoint_writer.h"

#include <utility>

#include "common/platform/failpoint.h"

namespace hdps {

void CheckpointWriter::Start(const Command& save, ViewId view, std::vector<TakenSnapshot> taken,
                             int64_t begun_ns) {
  clock_ = save.until;
  folder_ = save.path;
  taken_ = std::move(taken);
  work_.Start(executor_, [this, folder = save.path, view, begun_ns] {
    const RecordedSpan span(meters_.recorder(), {clock_ - 1}, "save", "write of a save");
    const auto write = [&]() -> Result<std::vector<SavedFile>> {
      HDPS_FAILPOINT_OR_RETURN("server.save.before_write");
      return WritePack(files_, folder, view, taken_);
    };
    saved_ = write();
    if (saved_.ok()) {
      meters_.CountSaved(*saved_);
      meters_.Took(FigureNamed("hdps_server_save_seconds"), begun_ns);
    }
    taken_.clear();
    HDPS_FAILPOINT("server.save.in_file");
  });
}

void CheckpointWriter::Await(const Command& command) { awaited_ = command; }

std::optional<CommandDone> CheckpointWriter::TakeAnswer() {
  if (running() && !work_.TakeEnd()) return std::nullopt;
  if (!awaited_) return std::nullopt;
  const Command command = *std::exchange(awaited_, std::nullopt);
  CommandDone done;
  done.id = command.id;
  if (command.until != clock_) {
    done.code = Code::kNotFound;
    done.message = "nothing of step " + std::to_string(command.until) + " was taken here";
  } else if (!saved_.ok()) {
    done.code = saved_.status().code();
    done.message = saved_.status().message();
  } else {
    done.files = *saved_;
    for (const SavedFile& file : done.files) done.rows += file.rows;
  }
  return done;
}

}  // namespace hdps
