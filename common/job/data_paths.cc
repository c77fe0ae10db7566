// Matches patterns one path component at a time with fnmatch.
#include "common/job/data_paths.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

constexpr const char* kPatternCharacters = "*?[";

bool IsHidden(const std::string& name) { return name.starts_with('.') || name.starts_with('_'); }

bool IsFolder(FileSystem& files, const std::string& path) { return files.List(path).ok(); }

// Appends the file, or the files in the folder.
Status AddFilesAt(FileSystem& files, const std::string& path, std::vector<std::string>* found) {
  const Result<std::vector<std::string>> names = files.List(path);
  if (!names.ok()) {
    found->push_back(path);
    return {};
  }
  for (const std::string& name : *names) {
    const std::string file = JoinPath(path, name);
    if (!IsHidden(name) && !IsFolder(files, file)) found->push_back(file);
  }
  return {};
}

// Returns the matches of `pattern`, whose components are separated by "/", under `folder` ("" or
// "/" at the beginning of the path).
std::vector<std::string> Matches(FileSystem& files, const std::string& folder,
                                 const std::string& pattern) {
  const size_t slash = pattern.find('/');
  const std::string part = pattern.substr(0, slash);
  const std::string rest = slash == std::string::npos ? "" : pattern.substr(slash + 1);
  const auto below = [&](const std::string& name) {
    return folder.empty() ? name : JoinPath(folder, name);
  };
  std::vector<std::string> here;
  if (part.empty() || !IsPattern(part)) {
    here = {part.empty() ? (folder.empty() ? "/" : folder) : below(part)};
  } else {
    const Result<std::vector<std::string>> names = files.List(folder.empty() ? "." : folder);
    if (!names.ok()) return {};
    for (const std::string& name : *names) {
      if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) here.push_back(below(name));
    }
  }
  std::vector<std::string> found;
  for (const std::string& path : here) {
    if (!rest.empty()) {
      std::ranges::move(Matches(files, path, rest), std::back_inserter(found));
    } else if (files.Exists(path)) {
      found.push_back(path);
    }
  }
  return found;
}

bool IsUnfinished(const std::string& path) {
  return std::ranges::any_of(kUnfinishedEndings,
                             [&](const char* ending) { return path.ends_with(ending); });
}

// Returns true for a path with a name that other programs hide and the entry does not give.
bool HasHiddenPart(std::string_view path, std::string_view entry) {
  const auto next = [](std::string_view* rest) {
    const std::string_view part = rest->substr(0, rest->find('/'));
    rest->remove_prefix(std::min(rest->size(), part.size() + 1));
    return part;
  };
  while (!path.empty()) {
    const std::string_view part = next(&path), given = next(&entry);
    const bool hidden = part.starts_with('_') || part.starts_with('.');
    if (hidden && !given.starts_with(part.front())) return true;
  }
  return false;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

bool IsPattern(const std::string& path) {
  return path.find_first_of(kPatternCharacters) != std::string::npos;
}

bool NamesTable(const std::string& path) { return path.starts_with("memory:"); }

Result<std::vector<std::string>> FilesOf(FileSystem& files, const std::string& path) {
  std::vector<std::string> found;
  if (files.Exists(path)) {
    HDPS_RETURN_IF_ERROR(AddFilesAt(files, path, &found));
  } else if (IsPattern(path)) {
    for (const std::string& match : Matches(files, "", path)) {
      HDPS_RETURN_IF_ERROR(AddFilesAt(files, match, &found));
    }
  }
  std::ranges::sort(found);
  return found;
}

std::string EndMarkerOf(FileSystem& files, const DataSpec& data) {
  if (data.follow_until.empty()) return "";
  const std::string& entry = data.train[0];
  if (files.List(entry).ok()) return JoinPath(entry, data.follow_until);
  return FolderOf(entry) + data.follow_until;
}

Result<std::vector<std::string>> FollowedFilesOf(FileSystem& files, const DataSpec& data) {
  HDPS_ASSIGN_OR_RETURN(std::vector<std::string> found, FilesOf(files, data.train[0]));
  const std::string marker = EndMarkerOf(files, data);
  // A file that the job names is followed whatever its name.
  if (found != data.train) {
    std::erase_if(found, [&](const std::string& path) {
      return path == marker || IsUnfinished(path) || HasHiddenPart(path, data.train[0]);
    });
  }
  return found;
}

Result<std::vector<std::string>> TrainingFiles(FileSystem& files, const DataSpec& data) {
  if (!data.follow) return data.train;
  return FollowedFilesOf(files, data);
}

}  // namespace hdps
