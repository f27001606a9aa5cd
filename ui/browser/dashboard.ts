// The dashboard as tests see it: what its pages and controls are called. A name that changes is changed here.

import { expect, type Locator, type Page } from "@playwright/test";

export const PAGE_NAMES = [
  "Overview",
  "Content",
  "Accounts",
  "Creators",
  "Collections",
  "Events",
  "Tracking",
  "Import",
  "API",
] as const;
export type PageName = (typeof PAGE_NAMES)[number];

/** The pages of lists, by their address. */
export const PATHS: Readonly<Record<PageName, string>> = {
  Overview: "/",
  Content: "/content",
  Accounts: "/accounts",
  Creators: "/creators",
  Collections: "/collections",
  Events: "/events",
  Tracking: "/tracking",
  Import: "/imports",
  API: "/api",
};

export class Dashboard {
  readonly page: Page;
  readonly main: Locator;

  constructor(page: Page) {
    this.page = page;
    this.main = page.getByRole("main");
  }

  /** Opens a page, signed in by the link's key. */
  async open(path: string, key: string): Promise<void> {
    await this.page.goto(`${path}#key=${key}`);
    await this.settled();
  }

  /** Waits until everything that the page shows is loaded, and what the key permits is known. */
  async settled(): Promise<void> {
    await expect(this.page.getByTitle(/^Key: /)).toBeAttached();
    await this.loaded();
  }

  /** Waits until everything that the page shows is loaded. The identity may come later. */
  async loaded(): Promise<void> {
    await expect(this.navigation).toBeVisible();
    await expect(this.heading).toBeVisible();
    await expect(this.main.locator("[aria-busy=true], .skeleton")).toHaveCount(0);
  }

  get heading(): Locator {
    return this.main.getByRole("heading", { level: 1 });
  }

  get navigation(): Locator {
    return this.page.getByRole("navigation", { name: "Pages" });
  }

  link(name: PageName): Locator {
    return this.navigation.getByRole("link", { name, exact: true });
  }

  async go(name: PageName): Promise<void> {
    await this.link(name).click();
    await expect(this.link(name)).toHaveAttribute("aria-current", "page");
    await this.settled();
  }

  card(name: string | RegExp): Locator {
    return this.main.getByRole("region", { name, exact: typeof name === "string" }).first();
  }

  /** What can be done with a card besides. */
  async openMenu(card: string, item: string): Promise<Locator> {
    await this.card(card).locator("summary[aria-label^='More: ']").click();
    return this.card(card).getByRole("button", { name: item, exact: true });
  }

  /** The value of a fact, which is a name and a value. */
  fact(name: string): Locator {
    return this.main
      .getByRole("term")
      .filter({ hasText: new RegExp(`^${name}$`) })
      .locator("xpath=following-sibling::dd[1]");
  }

  /** A metric of the overview: its name, its value and its change. */
  tile(name: string): Locator {
    return this.card("Gained in this period").getByText(name, { exact: true }).locator("..");
  }

  /** Opens the table twin of the first chart. */
  async openChartTable(): Promise<Table> {
    const chart = this.main.getByRole("figure").first();
    await chart.getByText("Table", { exact: true }).click();
    return new Table(chart);
  }

  table(name: string): Table {
    return new Table(this.card(new RegExp(`^${name}(: table)?$`)));
  }

  /** The values of the day of a chart that is looked at. */
  get tooltip(): Locator {
    return this.page.getByTestId("tooltip");
  }

  /** Of the record that the page is about. */
  get picture(): Locator {
    return this.main.locator(".page-head .picture");
  }

  get tryAgain(): Locator {
    return this.main.getByRole("button", { name: "Try again" });
  }

  /** What a person chooses on a page, and the address has to hold. Of the rows of a table, the first. */
  get choices(): Locator {
    const kinds = [
      "select",
      "input[type=checkbox]",
      "input[type=radio]",
      "input[type=search]",
      "input[type=number]",
      "input[type=date]",
      "button[aria-pressed]",
    ];
    return this.main.locator(
      `:is(${kinds.join()}):visible:not(tr:not(:first-child) *, [aria-label^="Select "])`,
    );
  }

  async choosePeriod(period: string): Promise<void> {
    await this.main.getByRole("combobox", { name: "Range" }).selectOption(period);
  }

  get showMore(): Locator {
    return this.main.getByRole("button", { name: /^Show .*more$/ });
  }

  async chooseRange(start: string, end: string): Promise<void> {
    await this.main.getByRole("combobox", { name: "Range" }).selectOption("custom");
    await this.main.getByLabel("First day (UTC)").fill(start);
    await this.main.getByLabel("Last day (UTC)").fill(end);
    await this.main.getByRole("button", { name: "Show", exact: true }).click();
  }

  get searchButton(): Locator {
    return this.page.getByRole("button", { name: /^Search/ });
  }

  get addAccounts(): Locator {
    return this.main.getByRole("button", { name: "Add accounts" });
  }

  get addForm(): AddForm {
    return new AddForm(this.page.getByRole("form", { name: "Add accounts" }));
  }

  get pause(): Locator {
    return this.main.getByRole("button", { name: "Pause tracking", exact: true });
  }

  get resume(): Locator {
    return this.main.getByRole("button", { name: "Resume tracking", exact: true });
  }

  get signOut(): Locator {
    return this.page.getByRole("button", { name: "Sign out" });
  }

  /** The dialog that is open. */
  get dialog(): Locator {
    return this.page.getByRole("dialog").last();
  }

  get palette(): Palette {
    return new Palette(this.page.getByRole("dialog", { name: "Search" }));
  }
}

/** The search palette. */
export class Palette {
  readonly dialog: Locator;
  readonly input: Locator;
  readonly hits: Locator;
  readonly chosen: Locator;

  constructor(dialog: Locator) {
    this.dialog = dialog;
    this.input = dialog.getByRole("combobox");
    this.hits = dialog.getByRole("option");
    this.chosen = dialog.getByRole("option", { selected: true });
  }
}

/** The form that adds many accounts. */
export class AddForm {
  readonly form: Locator;
  readonly lines: Locator;
  readonly submit: Locator;
  /** One item for each line, once it is answered. */
  readonly results: Locator;

  constructor(form: Locator) {
    this.form = form;
    this.lines = form.getByRole("textbox", { name: /one per line/ });
    this.submit = form.getByRole("button", { name: /^(Track|Add)/ });
    this.results = form.getByRole("listitem");
  }
}

/** A cell as it is read: the text, and the exact value in the title. */
export interface Cell {
  text: string;
  title: string | null;
}

export class Table {
  readonly card: Locator;

  constructor(card: Locator) {
    this.card = card;
  }

  get rows(): Locator {
    return this.card.locator("table").first().locator("tbody tr:not([aria-hidden])");
  }

  get headings(): Locator {
    return this.card.locator("table").first().locator("thead th");
  }

  /** In the table's card, which may be around it; behind a menu. */
  get csv(): Locator {
    return this.card
      .locator("xpath=ancestor-or-self::*[.//button[normalize-space()='Save as CSV']][1]")
      .locator("button")
      .filter({ hasText: "Save as CSV" })
      .first();
  }

  /** Opens what the button is behind. */
  async openCsv(): Promise<Locator> {
    const menu = this.csv.locator("xpath=ancestor::details[1]");
    if ((await menu.getAttribute("open")) === null) await menu.locator("summary").click();
    return this.csv;
  }

  /** The cells of all rows by the name of their column. */
  async read(): Promise<Map<string, Cell>[]> {
    const rows = await this.card
      .locator("table")
      .first()
      .evaluate((table) => {
        const names = [...table.querySelectorAll("thead th")].map((heading) =>
          heading.textContent.replace(/ ?[↑↓]$/, "").trim(),
        );
        return [...table.querySelectorAll("tbody tr:not([aria-hidden])")].map((row) =>
          [...row.querySelectorAll("td, th")].map(
            (cell, position): [string, { text: string; title: string | null }] => {
              const text = cell.textContent.trim();
              return [
                names[position] ?? "",
                { text, title: cell.querySelector("[title]")?.getAttribute("title") ?? null },
              ];
            },
          ),
        );
      });
    return rows.map((cells) => new Map(cells));
  }
}

export class SignInForm {
  readonly page: Page;
  readonly key: Locator;
  readonly submit: Locator;
  readonly staySignedIn: Locator;
  readonly reason: Locator;

  constructor(page: Page) {
    this.page = page;
    this.key = page.getByLabel("API key");
    this.submit = page.getByRole("button", { name: "Sign in" });
    this.staySignedIn = page.getByRole("checkbox", { name: /stay signed in/i });
    this.reason = page.getByRole("alert");
  }

  async signIn(key: string): Promise<void> {
    await this.key.fill(key);
    await this.submit.click();
  }
}
