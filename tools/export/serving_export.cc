// Writes a checkpoint as a folder that hdps serve maps.
#include "tools/export/export.h"
#include "tools/scoring/serving_folder.h"

namespace hdps {

Status ExportServing(ExportTask& task) {
  if (!task.request.common.job.empty() || !task.request.common.overrides.empty()) {
    return {Code::kInvalidArgument,
            "--format=serving takes the job from the checkpoint; leave --job and --set out"};
  }
  return WriteServingFolder(task.files, task.executor, task.found, task.job, task.folder);
}

}  // namespace hdps
