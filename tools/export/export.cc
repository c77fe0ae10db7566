// Verifies, lets a format write into a folder beside, and renames the folder.
#include "tools/export/export.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/byte_count.h"
#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/platform/output_file.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/scored_job.h"
#include "tools/scoring/serving_folder.h"
#include "tools/warnings.h"

namespace hdps {
namespace {

#ifdef HDPS_WITH_ONNX
constexpr auto kOnnx = ExportOnnx;
#else
constexpr decltype(ExportFormat::write) kOnnx = nullptr;
#endif

// Writes a folder that hdps maps.
Status ExportServing(ExportTask& task) {
  if (!task.request.common.job.empty() || !task.request.common.overrides.empty()) {
    return {Code::kInvalidArgument,
            "--format=serving takes the job from the checkpoint; leave --job and --set out"};
  }
  if (task.request.weights != DType::kFp32) {
    return {Code::kInvalidArgument,
            "--weights: with --format=serving rows stay as they were saved; leave --weights out"};
  }
  return WriteServingFolder(task.files, task.executor, task.found, task.job, task.folder);
}

constexpr ExportFormat kFormats[] = {
    {"safetensors", ExportSafetensors, ""},
    {"onnx", kOnnx,
     "scripts/install_deps.sh --export installs libonnx-dev and libprotobuf-dev; then configure "
     "and "
     "build again"},
    {"vectors", ExportVectors, ""},
    {"serving", ExportServing, ""},
};

Result<const ExportFormat*> FormatOf(const ExportRequest& request) {
  std::vector<std::string> names;
  std::string list;
  for (const ExportFormat& format : kFormats) {
    names.emplace_back(format.name);
    list += (list.empty() ? "" : ", ") + names.back();
    if (format.name != request.format) continue;
    if (format.write != nullptr) return &format;
    return Status(Code::kInvalidArgument, "--format=" + request.format +
                                              ": this build of hdps lacks it; " +
                                              std::string(format.how_to_get));
  }
  if (request.format.empty()) {
    return Status(Code::kInvalidArgument, "--format is missing; give one of " + list);
  }
  return Status(Code::kInvalidArgument, "--format=" + request.format + ": expected one of " + list +
                                            DidYouMean(request.format, names));
}

Status CheckFlags(const ExportRequest& request, FileSystem& files) {
  const CommonFlags& flags = request.common;
  if (flags.checkpoint.empty()) {
    return {Code::kInvalidArgument,
            "--checkpoint is missing; give a checkpoint's folder or the --out of a run"};
  }
  if (flags.out.empty()) {
    return {Code::kInvalidArgument, "--out is missing; give the folder to make"};
  }
  if (files.Exists(flags.out)) {
    return {Code::kInvalidArgument,
            "--out=" + flags.out + " exists; give another folder, or remove that one"};
  }
  return {};
}

// Opens the checkpoint and a job that fits it.
Result<ExportTask> OpenTask(const ExportRequest& request, FileSystem& files, Executor& executor,
                            std::ostream& to, ExportProgress& progress) {
  const CommonFlags& flags = request.common;
  HDPS_ASSIGN_OR_RETURN(FoundCheckpoint found,
                        OpenNamedCheckpoint(files, flags.checkpoint, flags.which));
  HDPS_ASSIGN_OR_RETURN(ReadJob read, JobOf(flags, files, &found));
  HDPS_RETURN_IF_ERROR(NeedsLayers(read.job, "hdps export"));
  PrintWarnings(read.job.warnings);
  HDPS_RETURN_IF_ERROR(FitToCheckpoint(found, &read.job));
  HDPS_RETURN_IF_ERROR(LoadVocabularyOf(read.origin, found, files, &read.job.data));
  TellWhichIsTaken(found);
  return ExportTask{request,
                    files,
                    executor,
                    std::move(read.job),
                    std::move(read.origin),
                    std::move(found),
                    BesideOf(flags.out),
                    to,
                    progress};
}

// Prints what was written, and how fast.
Status DescribeFolder(const ExportTask& task) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> names, task.files.List(task.folder));
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t more, task.files.FileSize(JoinPath(task.folder, name)));
    bytes += more;
  }
  const double seconds = std::max(task.progress.seconds(), 1e-3);
  task.to << "step " << task.found.manifest.clock << " as " << task.request.format << " in "
          << EscapeUntrusted(task.request.common.out) << ": " << names.size() << " files, "
          << ShowByteCount(bytes) << ", "
          << ShowNumber("%.0f", static_cast<double>(bytes) / 1e6 / seconds) << " MB/s\n";
  return {};
}

}  // namespace

std::span<const ExportFormat> ExportFormats() { return kFormats; }

Status RunExport(const ExportRequest& request, FileSystem& files, Executor& executor,
                 std::ostream& to) {
  HDPS_ASSIGN_OR_RETURN(const ExportFormat* const format, FormatOf(request));
  HDPS_RETURN_IF_ERROR(CheckFlags(request, files));
  ExportProgress progress;
  HDPS_ASSIGN_OR_RETURN(ExportTask task, OpenTask(request, files, executor, to, progress));
  // An export that was killed may have left its folder.
  HDPS_RETURN_IF_ERROR(files.RemoveAll(task.folder));
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(task.folder));
  Status written = format->write(task);
  if (written.ok()) written = DescribeFolder(task);
  if (written.ok()) written = files.Rename(task.folder, request.common.out);
  if (!written.ok()) HDPS_RETURN_IF_ERROR(files.RemoveAll(task.folder));
  return written;
}

}  // namespace hdps
