// The panels of a job's page as JSON texts, and their common document.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/picture/job_picture.h"

namespace hdps {

struct Explanation;

// The names of all panels, as in /api/v1/NAME: "health", ..., "page". docs/formats.md has their
// fields.
std::span<const std::string_view> PanelNames();

// Returns the JSON of a panel; none if there is no panel of that name. `since`: the version of the
// picture that the reader has, which needs no older points, events and checkpoints; 0: none.
std::optional<std::string> PanelJson(const JobPicture& picture, std::string_view panel,
                                     uint64_t since);

// Returns the document that OUT/figures.json keeps: the page with the figures of all members.
std::string WholeJson(const JobPicture& picture);

// Returns what `hdps why` would say of the job now.
Explanation ExplanationOf(const JobPicture& picture);

// Returns the readings of all servers, or of all workers, added up; empty if there are none.
Readings SumOf(const JobPicture& picture, bool workers);

// The panels in groups of files; each returns a JSON object. `since` is 0 or a version of this
// process.
std::string HealthPanel(const JobPicture& picture);
std::string TrainingPanel(const JobPicture& picture, uint64_t since);
std::string CheckpointsPanel(const JobPicture& picture, uint64_t since);
std::string EventsPanel(const JobPicture& picture, uint64_t since);
std::string ConfigurationPanel(const JobPicture& picture);
std::string AboutPanel(const JobPicture& picture);
std::string TimePanel(const JobPicture& picture);
std::string StragglersPanel(const JobPicture& picture);
std::string RowsPanel(const JobPicture& picture);
std::string FiguresPanel(const JobPicture& picture);

}  // namespace hdps
