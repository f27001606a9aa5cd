//! Excel workbooks.

use crate::recorder::{read, workbook, zip};

const STRINGS: &str = r#"<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>id</t></si><si><r><t>sha</t></r><r><t>red &amp; rich</t></r></si></sst>"#;
const STYLES: &str = r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>"#;

#[test]
fn cells_of_every_type_are_read() {
    let rows = r#"<row r="2"><c r="A2" t="str"><v>Title</v></c></row>
        <row r="4"><c r="A4" t="s"><v>0</v></c><c r="B4" t="inlineStr"><is><t>name</t></is></c><c r="C4" t="str"><v>number</v></c><c r="E4" t="str"><v>time</v></c></row>
        <row r="5"><c r="A5" t="str"><v>1</v></c><c r="B5" t="s"><v>1</v></c><c r="C5"><v>12</v></c><c r="E5" s="1"><v>46023.5</v></c></row>
        <row r="6"><c r="A6"/><c r="B6" t="str"><v> </v></c></row>
        <row r="9"><c r="A9"><v>7658723954960221897</v></c><c r="C9" t="b"><v>1</v></c><c r="E9" t="e"><v>#REF!</v></c></row>"#;
    let book = workbook(
        &[
            ("Data", rows),
            ("About", r#"<row r="1"><c r="A1" t="str"><v>Exported</v></c></row>"#),
            ("Empty", ""),
        ],
        &[("xl/sharedStrings.xml", STRINGS.as_bytes()), ("xl/styles.xml", STYLES.as_bytes())],
    );
    for contents in [book.clone(), zip(&[("folder/book.xlsx", &book), ("b.txt", b"x")])] {
        let found = read(contents);
        assert_eq!(found.lines(), [5, 9]);
        assert_eq!(found.values("id"), ["1", "Decimal(7.658723954960222e18)"]);
        assert_eq!(found.values("name"), ["shared & rich", ""]);
        assert_eq!(found.values("number"), ["Decimal(12.0)", "Boolean(true)"]);
        assert_eq!(
            found.values("time"),
            ["LocalTime(1767268800000)", "Invalid(\"is an error of the spreadsheet\")"]
        );
        let unknown: Vec<_> = found.unknown.iter().map(|(part, _)| part.clone().unwrap()).collect();
        assert!(unknown.iter().any(|part| part.ends_with("About")), "{unknown:?}");
        assert_eq!(found.samples, 2 + 1);
    }
}
