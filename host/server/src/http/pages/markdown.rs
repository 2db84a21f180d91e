//! Renders Markdown as HTML: descriptions of areas and the guides. HTML in
//! Markdown is shown as text.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

/// Renders a description from an area's manifest. HTML in it is escaped,
/// because areas are not trusted.
pub(super) fn description(source: &str) -> Markup {
    render(events(source).into_iter())
}

/// Renders a guide without its title. Headings get anchors, and links to other
/// guides lead to their pages.
pub(super) fn guide(source: &str) -> Markup {
    let body = source.split_once('\n').map_or("", |(_title, body)| body);
    let mut events = events(body);
    for at in 0..events.len() {
        let name = anchor(&events[at + 1..]);
        match &mut events[at] {
            Event::Start(Tag::Heading { id, .. }) => *id = Some(name.into()),
            Event::Start(Tag::Link { dest_url, .. }) if !dest_url.contains("://") => {
                *dest_url = CowStr::from(dest_url.replace(".md", ""));
            }
            _ => {}
        }
    }
    render(events.into_iter())
}

fn events(source: &str) -> Vec<Event<'_>> {
    let focusable = "<pre tabindex=\"0\"><code>";
    let events = Parser::new_ext(source, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(markup) | Event::InlineHtml(markup) => Event::Text(markup),
        // `tabindex` makes a scrollable block reachable by keyboard.
        Event::Start(Tag::CodeBlock(_)) => Event::Html(focusable.into()),
        Event::End(TagEnd::CodeBlock) => Event::Html("</code></pre>\n".into()),
        other => other,
    });
    events.collect()
}

fn render<'a>(events: impl Iterator<Item = Event<'a>>) -> Markup {
    let mut page = String::new();
    pulldown_cmark::html::push_html(&mut page, events);
    PreEscaped(page)
}

/// Returns the anchor of a heading: its words in lower case, joined by hyphens.
fn anchor(after_start: &[Event<'_>]) -> String {
    let inner =
        after_start.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let text: String = inner
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_an_area_is_text() {
        let page = description("a <script>alert(1)</script> *b*").into_string();
        assert_eq!(page, "<p>a &lt;script&gt;alert(1)&lt;/script&gt; <em>b</em></p>\n");
    }

    #[test]
    fn a_guide_has_anchors_and_links_to_pages() {
        let page =
            guide("# Title\n\n## The `If-Match` header\n\n[b](tour.md#artifacts)\n\n    x\n");
        insta::assert_snapshot!(page.into_string(), @r##"
        <h2 id="the-if-match-header">The <code>If-Match</code> header</h2>
        <p><a href="tour#artifacts">b</a></p>
        <pre tabindex="0"><code>x
        </code></pre>
        "##);
    }
}
