//! Days as TikTok Studio writes them: `February 28`, `28 de febrero`, `2月28日`, in the languages of its interface.

use chrono::{Datelike, NaiveDate};

/// The languages with the names of the twelve months, as they stand beside a day.
const LANGUAGES: [(&str, &str); 25] = [
    ("Arabic", "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر"),
    ("Bengali", "জানুয়ারী ফেব্রুয়ারী মার্চ এপ্রিল মে জুন জুলাই আগস্ট সেপ্টেম্বর অক্টোবর নভেম্বর ডিসেম্বর"),
    ("Czech", "ledna února března dubna května června července srpna září října listopadu prosince"),
    ("Danish", "januar februar marts april maj juni juli august september oktober november december"),
    ("Dutch", "januari februari maart april mei juni juli augustus september oktober november december"),
    ("English", "january february march april may june july august september october november december"),
    ("Filipino", "enero pebrero marso abril mayo hunyo hulyo agosto setyembre oktubre nobyembre disyembre"),
    (
        "Finnish",
        "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta",
    ),
    ("French", "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    ("German", "januar februar märz april mai juni juli august september oktober november dezember"),
    (
        "Greek",
        "ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου δεκεμβρίου",
    ),
    ("Hebrew", "בינואר בפברואר במרץ באפריל במאי ביוני ביולי באוגוסט בספטמבר באוקטובר בנובמבר בדצמבר"),
    ("Hindi", "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्तूबर नवंबर दिसंबर"),
    (
        "Hungarian",
        "január február március április május június július augusztus szeptember október november december",
    ),
    ("Indonesian", "januari februari maret april mei juni juli agustus september oktober november desember"),
    (
        "Italian",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    ),
    ("Malay", "januari februari mac april mei jun julai ogos september oktober november disember"),
    (
        "Polish",
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    ),
    (
        "Portuguese",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
    (
        "Romanian",
        "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    ),
    ("Russian", "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"),
    ("Spanish", "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    ("Swedish", "januari februari mars april maj juni juli augusti september oktober november december"),
    ("Thai", "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม"),
    ("Ukrainian", "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня"),
];

/// Turkish has a letter that lower case does not keep; the others write months as numbers.
const TURKISH: &str = "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık";
/// Languages that are read beside [`LANGUAGES`].
const OTHER_LANGUAGES: [&str; 5] = ["Chinese", "Japanese", "Korean", "Turkish", "Vietnamese"];
/// Words beside the names: articles, and the word for day.
const FILLERS: [&str; 9] = ["de", "del", "ng", "ika", "ngày", "วันที่", "a", "of", "den"];

/// Returns the names of all languages, in the order of the alphabet.
pub fn languages() -> Vec<&'static str> {
    let mut names: Vec<_> = LANGUAGES.iter().map(|(name, _)| *name).chain(OTHER_LANGUAGES).collect();
    names.sort_unstable();
    names
}

/// A day without a year, or with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenDay {
    pub year: Option<i32>,
    pub month: u32,
    pub day: u32,
}

/// Parses a month and a day in any of the languages. `None`: the text is no day, or its language is unknown.
pub fn parse_day_of_year(text: &str) -> Option<WrittenDay> {
    let text = text.trim().to_lowercase();
    let day = parse_numbered_month(&text).or_else(|| parse_named_month(&text))?;
    // A leap year has every day of any year.
    let year = day.year.unwrap_or(2_000);
    NaiveDate::from_ymd_opt(year, day.month, day.day).filter(|date| (1..=12).contains(&date.month()))?;
    Some(day)
}

/// Parses `2月28日`, `2월 28일` and `28 tháng 2`.
fn parse_numbered_month(text: &str) -> Option<WrittenDay> {
    let number = |digits: &str| digits.trim().parse::<u32>().ok();
    for (month_word, day_word) in [("月", "日"), ("월", "일")] {
        if let Some((month, rest)) = text.split_once(month_word) {
            let (year, month) = match month.split_once(['年', '년']) {
                Some((year, month)) => (Some(year.trim().parse().ok()?), month),
                None => (None, month),
            };
            let day = rest.trim().strip_suffix(day_word).unwrap_or(rest);
            return Some(WrittenDay { year, month: number(month)?, day: number(day)? });
        }
    }
    let (day, month) = text.split_once("tháng")?;
    let day = day.trim().trim_start_matches("ngày");
    let (month, year) = match month.split_once([',', '/']) {
        Some((month, year)) => (month, Some(year.trim().trim_start_matches("năm").trim().parse().ok()?)),
        None => (month, None),
    };
    Some(WrittenDay { year, month: number(month)?, day: number(day)? })
}

fn parse_named_month(text: &str) -> Option<WrittenDay> {
    let (mut year, mut month, mut day) = (None, None, None);
    let words = text.split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | '.'));
    for word in words.filter(|word| !word.is_empty() && !FILLERS.contains(word)) {
        if let Ok(number) = word.trim_end_matches(['º', 'ª']).parse::<u32>() {
            match number {
                1_900..=2_200 if year.is_none() => year = i32::try_from(number).ok(),
                1..=31 if day.is_none() => day = Some(number),
                _ => return None,
            }
        } else {
            let found = find_month(word)?;
            if month.replace(found).is_some() {
                return None;
            }
        }
    }
    Some(WrittenDay { year, month: month?, day: day? })
}

/// Returns the number of a month. No name means different months in two languages.
fn find_month(word: &str) -> Option<u32> {
    let names = LANGUAGES.iter().map(|(_, names)| *names).chain([TURKISH]);
    let position = names.filter_map(|names| names.split(' ').position(|name| name == word)).next()?;
    u32::try_from(position + 1).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn days_of_all_languages_are_parsed() {
        for (text, month, day) in [
            ("February 28", 2, 28),
            ("28 de febrero", 2, 28),
            ("10 de marzo", 3, 10),
            ("28 février", 2, 28),
            ("28. Februar", 2, 28),
            ("28 de fevereiro", 2, 28),
            ("28 февраля", 2, 28),
            ("28 Şubat", 2, 28),
            ("28 lutego", 2, 28),
            ("febbraio 28", 2, 28),
            ("február 28.", 2, 28),
            ("28 กุมภาพันธ์", 2, 28),
            ("28 فبراير", 2, 28),
            ("2月28日", 2, 28),
            ("2월 28일", 2, 28),
            ("28 tháng 2", 2, 28),
            ("ngày 28 tháng 2", 2, 28),
            ("Pebrero 28", 2, 28),
            ("February 29", 2, 29),
        ] {
            assert_eq!(parse_day_of_year(text), Some(WrittenDay { year: None, month, day }), "{text}");
        }
        let dated = Some(WrittenDay { year: Some(2_026), month: 2, day: 28 });
        for text in ["February 28, 2026", "28 de febrero de 2026", "2026年2月28日"] {
            assert_eq!(parse_day_of_year(text), dated, "{text}");
        }
        for text in [
            "",
            "28",
            "February",
            "February 30",
            "February 28 29",
            "28 brumaire",
            "2026-02-28",
            "Feb 2026 12 13",
        ] {
            assert_eq!(parse_day_of_year(text), None, "{text}");
        }
    }

    #[test]
    fn no_name_means_two_months() {
        let mut months = HashMap::new();
        for (language, names) in LANGUAGES.into_iter().chain([("Turkish", TURKISH)]) {
            let names: Vec<_> = names.split(' ').collect();
            assert_eq!(names.len(), 12, "{language}");
            for (month, name) in names.into_iter().enumerate() {
                assert_eq!(*months.entry(name).or_insert(month), month, "{language}: {name}");
                assert_eq!(name.to_lowercase(), name, "{language}");
            }
        }
    }
}
