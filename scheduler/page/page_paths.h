// Serves the page that shows a running job, with its script and style; all of it is in the program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/http/http_server.h"

namespace hdps {

// Returns the paths "/" and "/tables", and those of the files that "/" loads. The page's script
// asks /api/v1/page, which the caller serves. `document` returns the same JSON, whole; "/tables"
// shows it to browsers without scripts. It is called on the HTTP thread.
std::vector<HttpPath> PagePaths(std::function<std::string()> document);

}  // namespace hdps
