// Names the texts that the build puts into the program: of the page, and of the report.
#pragma once

#include <string_view>

namespace hdps {

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;   // dygraphs' own style, then the page's.
extern const std::string_view kDygraphs;  // The library with its license.
extern const std::string_view kPageScript;
extern const std::string_view kReportScript;
extern const std::string_view kPageIcon;
// Sources for a content security policy: 'sha256-...' of kDygraphs and of kReportScript.
extern const std::string_view kReportScriptHashes;

}  // namespace hdps
