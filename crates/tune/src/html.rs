//! Renders the page of a search as a single HTML file, from its Markdown and its chart.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

const STYLE: &str = "body { font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; }\n\
                     table { border-collapse: collapse; display: block; overflow-x: auto; }\n\
                     td, th { padding: 0.2em 0.7em; border-bottom: 1px solid #ddd; text-align: left; }\n\
                     svg { max-width: 100%; height: auto; }\n";

/// Renders the page with the chart in place of its image. Escapes markup in the text, which may come from a compiler or
/// from kernel names.
pub fn render(title: &str, markdown: &str, chart: Option<&str>) -> String {
    let mut is_image = false;
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Image { .. }) => {
            is_image = true;
            chart.map(|chart| Event::Html(chart.to_owned().into()))
        }
        Event::End(TagEnd::Image) => {
            is_image = false;
            None
        }
        _ if is_image => None,
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        event => Some(event),
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    let mut name = String::new();
    html::push_html(&mut name, [Event::Text(title.into())].into_iter());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{name}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_a_reason_is_text_and_the_chart_takes_the_place_of_its_image() {
        let markdown = "# Search\n\n![lines](search.svg)\n\n| reason |\n|---|\n| wrong: copy<1> <b>x</b> |\n\n<script>bad()</script>\n";
        let page = render("a & b", markdown, Some("<svg id=\"chart\"></svg>"));
        assert!(page.contains("<title>a &amp; b</title>") && page.contains("<h1>Search</h1>"), "{page}");
        assert!(page.contains("<p><svg id=\"chart\"></svg></p>") && !page.contains("search.svg"), "{page}");
        assert!(page.contains("<td>wrong: copy&lt;1&gt; &lt;b&gt;x&lt;/b&gt;</td>"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }
}
