// Defines the paths and their types.
#include "scheduler/page/page_paths.h"

#include <memory>
#include <string_view>
#include <utility>

#include "scheduler/page/page_assets.h"
#include "scheduler/page/page_tables.h"

namespace hdps {
namespace {

HttpPath Asset(const char* path, const char* type, std::string_view text) {
  const auto body = std::make_shared<const std::string>(text);
  const auto answer = [type, body](const HttpRequest&) {
    HttpAnswer asset;
    asset.type = type;
    asset.body = body;
    return asset;
  };
  return {path, /*open=*/false, answer};
}

}  // namespace

std::vector<HttpPath> PagePaths(std::function<std::string()> document) {
  const auto tables = [document = std::move(document)](const HttpRequest&) {
    HttpAnswer page;
    page.type = "text/html; charset=utf-8";
    page.body = std::make_shared<const std::string>(TablesPage(document()));
    return page;
  };
  return {Asset("/", "text/html; charset=utf-8", kPageHtml),
          Asset("/page.css", "text/css; charset=utf-8", kPageCss),
          Asset("/dygraphs.js", "text/javascript; charset=utf-8", kDygraphs),
          Asset("/page.js", "text/javascript; charset=utf-8", kPageScript),
          Asset("/icon.svg", "image/svg+xml", kPageIcon),
          {"/tables", /*open=*/false, tables}};
}

}  // namespace hdps
