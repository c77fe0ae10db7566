// Walks the JSON and writes tables of it.
#include "scheduler/page/page_tables.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/show_number.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kItemsMax = 8;    // Values of a list in a cell.
constexpr size_t kRowsMax = 1000;  // Of one table.

std::string Words(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string Cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return ShowNumber(std::abs(number) < 1e6 ? "%.6g" : "%.0f", number);
  }
  if (!value.is_structured()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  size_t left = value.size();
  if (value.is_array() && left > kItemsMax) text = std::to_string(left - kItemsMax) + " more, ";
  for (const auto& [name, item] : value.items()) {
    if (value.is_array() && left-- > kItemsMax) continue;
    if (value.is_object()) text += Words(name) + " ";
    text += (item.is_structured() ? "(" + Cell(item) + ")" : Cell(item)) + ", ";
  }
  return text.substr(0, text.size() - std::min<size_t>(2, text.size()));
}

std::string Row(const char* tag, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) {
    html += std::string("<") + tag + ">" + Escaped(cell) + "</" + tag + ">";
  }
  return html + "</tr>\n";
}

bool IsListOfObjects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& item) { return item.is_object(); });
}

std::string ListTable(const Json& list) {
  std::vector<std::string> columns;
  for (const Json& item : list) {
    for (const auto& [name, value] : item.items()) {
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
    }
  }
  std::vector<std::string> heads = columns;
  for (std::string& head : heads) head = Words(head);
  std::string html = "<div class='wide'><table>" + Row("th", heads);
  for (size_t i = 0; i < list.size() && i < kRowsMax; ++i) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const auto found = list[i].find(column);
      cells.push_back(found == list[i].end() ? "" : Cell(*found));
    }
    html += Row("td", cells);
  }
  html += "</table></div>";
  if (list.size() > kRowsMax)
    html += "<p>and " + std::to_string(list.size() - kRowsMax) + " more</p>";
  return html + "\n";
}

std::string ObjectTables(const Json& object) {
  std::string plain, lists;
  for (const auto& [name, value] : object.items()) {
    if (IsListOfObjects(value)) {
      lists += "<h3>" + Escaped(Words(name)) + "</h3>" + ListTable(value);
    } else {
      plain += Row("td", {Words(name), Cell(value)});
    }
  }
  return (plain.empty() ? "" : "<table>" + plain + "</table>\n") + lists;
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string TablesOf(const std::string& json) {
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return "<p>The job has nothing to show yet.</p>\n";
  std::string html;
  for (const auto& [name, panel] : document.items()) {
    if (!panel.is_object()) continue;
    html +=
        "<section><h2>" + Escaped(Words(name)) + "</h2>\n" + ObjectTables(panel) + "</section>\n";
  }
  return html;
}

std::string TablesPage(const std::string& json) {
  return "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
         "<meta name='viewport' content='width=device-width, initial-scale=1'>"
         "<meta http-equiv='refresh' content='5'><title>hdps</title>"
         "<link rel='icon' href='icon.svg'><link rel='stylesheet' href='page.css'></head><body>\n"
         "<h1>hdps</h1>\n<p class='note'>This browser runs no script, so the figures are tables, "
         "loaded again every five seconds.</p>\n<main>" +
         TablesOf(json) + "</main></body></html>\n";
}

}  // namespace hdps
